"""The device that the suite runs on."""

import pytest

from pu_shift.device import DeviceError, get_device


@pytest.fixture(scope="session")
def gpu():
    """The last device: where there are two it is not the current one."""
    try:
        get_device(0)
    except DeviceError as error:
        pytest.exit(f"these tests need a CUDA device: {error}", returncode=2)
    import cupy

    return cupy.cuda.runtime.getDeviceCount() - 1


@pytest.fixture(scope="session")
def device(gpu):
    return get_device(gpu)


@pytest.fixture
def on(device):
    """Make the device the current one, as the estimators and the runner do."""
    with device.use():
        yield device
