"""Arrays on a device of array-api-strict: NumPy cannot see them, and no other device's mix."""

import array_api_strict
import numpy as np

DEVICE = array_api_strict.Device("device1")


def there(array):
    return array_api_strict.asarray(array, device=DEVICE)


def back(array):
    """Copy to NumPy what it keeps: its own ``to_device`` fails with NumPy 1."""
    assert array.device == DEVICE
    return np.array(array._array)
