"""Where arrays of plain numbers are computed: the setting ``device`` of what has a GPU path beside its CPU kernel."""

from __future__ import annotations

import logging

from rankpolicy.kernels import HAS_TRITON, TRITON_SWITCH, triton_is_on
from rankpolicy.types import RankPolicyError, unknown_name

DEVICES = ("cpu", "cuda", "auto")
logger = logging.getLogger("rankpolicy.devices")


def takes_cuda(device: str, *, pays: bool, what: str, num_bytes: int = 0) -> bool:
    """Whether a computation goes to the CUDA device; a line of the log says where it went.

    Parameters
    ----------
    device
        "cpu", "cuda", or "auto": CUDA where there is a device, triton is installed, and it pays.
    pays
        Whether the GPU is faster at this size.
    what
        What is computed, for the log.
    num_bytes
        About how much memory of the device it takes at most.
    """
    if device not in DEVICES:
        raise RankPolicyError(unknown_name("device", device, DEVICES))
    if device == "cpu":
        return False
    from torch.cuda import is_available, mem_get_info

    is_there = is_available()
    free = mem_get_info()[0] if is_there and num_bytes else num_bytes
    if device == "cuda":
        if not is_there:
            raise RankPolicyError(
                "device='cuda' needs a CUDA device, and torch sees none. Take device='auto' or 'cpu'."
            )
        if not HAS_TRITON:
            raise RankPolicyError("device='cuda' needs the package triton here: pip install triton, or device='cpu'.")
        if not triton_is_on():
            raise RankPolicyError(f"device='cuda' needs Triton's kernels, which {TRITON_SWITCH}=0 turns off.")
        if num_bytes > free:
            raise RankPolicyError(
                f"device='cuda' needs about {num_bytes / 1e9:.1f} GB for {what}, of which {free / 1e9:.1f} GB are free. Take device='cpu'."
            )
    is_taken = device == "cuda" or (is_there and triton_is_on() and pays and num_bytes <= free)
    if device == "auto" and is_there and not is_taken:
        reason = "too small to pay on a GPU" if not pays else "too large for the memory of the GPU"
        if not triton_is_on():
            reason = "the GPU path needs the package triton"
        logger.info("%s on the CPU: %s", what, reason)
    elif is_taken:
        logger.info("%s on CUDA", what)
    return is_taken
