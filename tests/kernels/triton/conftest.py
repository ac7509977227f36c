"""GPU kernels on a GPU, or in Triton's interpreter where the conftest at the top has chosen it."""

import importlib.util
import os

import pytest
import torch

HAS_TRITON = importlib.util.find_spec("triton") is not None
IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
collect_ignore_glob = [] if HAS_TRITON else ["test_*_on_gpu.py"]

if HAS_TRITON and IS_INTERPRETED:
    from triton.runtime import interpreter

    _patch_tensor = interpreter._patch_lang_tensor

    def _patch_tensor_for_numpy(tensor, scope):
        """NumPy 2.4 makes an int of arrays without axes only; Triton 3.6 asks it of arrays with one element."""
        _patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = _patch_tensor_for_numpy


@pytest.fixture(scope="session")
def device():
    """Where kernels run in these tests."""
    if IS_INTERPRETED:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device, or TRITON_INTERPRET=1 for Triton's interpreter")
    return torch.device("cuda")


@pytest.fixture(scope="session")
def only_on_gpu(device):
    """For shapes that take minutes in the interpreter."""
    if device.type != "cuda":
        pytest.skip("needs a CUDA device: too slow in Triton's interpreter")
    return device
