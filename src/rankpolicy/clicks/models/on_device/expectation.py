"""What an E step on the device gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

DeviceParameters = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceExpectation:
    """As ``Expectation``, with tensors."""

    successes: dict[str, Tensor]
    trials: dict[str, Tensor]
    log_likelihood: Tensor


DeviceStep = Callable[[DeviceParameters], DeviceExpectation]
