import numpy as np
from threadpoolctl import threadpool_info

from pu_shift._threads import one_thread


def blas_threads():
    return {part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas"}


def test_blas_runs_on_one_thread_and_then_as_before():
    np.linalg.eigh(np.eye(3))
    before = blas_threads()
    with one_thread():
        assert blas_threads() == {1}
        with one_thread(None):
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before
