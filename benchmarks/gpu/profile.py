"""Where the time of a training step on a CUDA device goes: kernels of one epoch, summed by name."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from rankpolicy.training import NetworkFit, fit_networks

PRODUCTS = ("gemm", "cutlass", "scores_kernel", "slopes_kernel", "products_kernel", "cublas", "dot_kernel")
COPIES = ("memcpy", "memset", "copy_kernel", "index_select", "indexselect", "gather", "catarray")


def profiled_epoch(fits: list[NetworkFit]) -> dict[str, Any]:
    """Microseconds per kernel name of the last epoch but one, how many launches it had, and the shares of products and copies."""
    found: dict[str, list[float]] = defaultdict(list)
    recorder = profile(activities=[ProfilerActivity.CUDA])
    epochs = fits[0].settings.epochs

    def after_epoch(epoch: int, *_: Any) -> None:
        torch.cuda.synchronize()
        if epoch == epochs - 2:
            recorder.start()
        elif epoch == epochs - 1:
            recorder.stop()

    fits[0].report_epoch = after_epoch
    fit_networks(fits)
    for event in recorder.events() or ():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            found[event.name].append(event.device_time_total)
    totals = {name: sum(times) for name, times in found.items()}
    whole = sum(totals.values()) or 1.0
    return {
        "launches": sum(map(len, found.values())),
        "busy_us": whole,
        "share_of_products": _share(totals, PRODUCTS) / whole,
        "share_of_copies": _share(totals, COPIES) / whole,
        "kernels": {name: (len(found[name]), total) for name, total in sorted(totals.items(), key=lambda own: -own[1])},
    }


def _share(totals: dict[str, float], names: tuple[str, ...]) -> float:
    return sum(total for name, total in totals.items() if any(own in name.lower() for own in names))
