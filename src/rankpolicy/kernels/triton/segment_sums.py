"""Sums of float64 numbers by key, always in the same order: no atomic additions, so equal inputs give equal bits.

Entries are sorted by key once. One lane adds up at most ``LONGEST`` neighbours; longer segments are cut into parts, whose sums are the
entries of the next level.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

LONGEST = 64
_BLOCK = 128
_LARGEST_INT32 = 2**31 - 1


class SegmentSums:
    """How entries are added up by key.

    Parameters
    ----------
    keys
        Key of each entry (entry,), int64 from 0 to ``num_keys`` - 1.
    num_keys
        Number of keys; those without entries have the sum 0.
    places
        Where the value of each entry stands (entry,); by default entry e reads value e.
    """

    def __init__(self, keys: Tensor, num_keys: int, *, places: Tensor | None = None) -> None:
        is_sorted = bool((keys[1:] >= keys[:-1]).all())
        if not is_sorted:
            keys, order = torch.sort(keys, stable=True)
            places = order if places is None else places[order]
        self.places = None if places is None else _compact(places)
        bounds = torch.searchsorted(keys.contiguous(), torch.arange(num_keys + 1, device=keys.device))
        self.levels: list[Tensor] = []  # the bounds (segment + 1,) of the segments of each level
        while True:
            lengths = bounds.diff()
            if len(lengths) == 0 or int(lengths.max()) <= LONGEST:
                self.levels.append(_compact(bounds))
                return
            num_parts = (lengths + LONGEST - 1) // LONGEST
            first_parts = torch.nn.functional.pad(num_parts.cumsum(0), (1, 0))
            owners = torch.repeat_interleave(torch.arange(len(lengths), device=keys.device), num_parts)
            number = torch.arange(len(owners), device=keys.device) - first_parts[owners]
            starts = bounds[owners] + number * LONGEST
            self.levels.append(_compact(torch.cat([starts, bounds[-1:]])))
            bounds = first_parts

    def __call__(self, values: Tensor) -> Tensor:
        """The sums (key,) of float64 values."""
        places = self.places
        for bounds in self.levels:
            num_segments = len(bounds) - 1
            sums = values.new_empty(num_segments)
            if num_segments:
                with torch.cuda.device_of(values):
                    segment_sum_kernel[(triton.cdiv(num_segments, _BLOCK),)](
                        values, bounds if places is None else places, bounds, sums, num_segments,
                        HAS_PLACES=places is not None, BLOCK=_BLOCK, num_warps=4,
                    )  # fmt: skip
            values, places = sums, None
        return values


def _compact(numbers: Tensor) -> Tensor:
    """As int32 where they fit: half the bytes to read."""
    return numbers.int() if len(numbers) == 0 or int(numbers.max()) <= _LARGEST_INT32 else numbers


@triton.jit(do_not_specialize=["num_segments"])
def segment_sum_kernel(
    values, places, bounds, sums, num_segments, HAS_PLACES: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """One lane per segment adds up its entries from the first to the last."""
    segments = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_segment = segments < num_segments
    start = tl.load(bounds + segments, mask=is_segment, other=0)
    end = tl.load(bounds + segments + 1, mask=is_segment, other=0)
    total = tl.zeros((BLOCK,), tl.float64)
    for entry in range(tl.max(end - start, 0)):
        place = start + entry
        is_entry = place < end
        if HAS_PLACES:
            place = tl.load(places + place, mask=is_entry, other=0)
        total += tl.load(values + place, mask=is_entry, other=0.0)
    tl.store(sums + segments, total, mask=is_segment)
