"""What a scan reads: files whose rows come in blocks, as often as they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankpolicy.display import short_repr


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Some consecutive rows of the files."""

    columns: NDArray[np.float32]  # Feature values (features, rows), NaN where one is missing
    labels: NDArray[np.float32] | None  # One label per row; None for data still to be ranked
    query_ids: NDArray[Any]  # The query of each row
    item_ids: NDArray[Any] | None = None  # The id of each row, or None
    groups: NDArray[Any] | None = None  # The protected group of each row, or None

    __repr__ = short_repr


class Source(Protocol):
    """Files that can be read block by block."""

    @property
    def files(self) -> Sequence[Path]:
        """The files, in the order in which they are read."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, where the files have them."""

    @property
    def reading(self) -> dict[str, Any]:
        """How the files are read, as JSON: the same files read otherwise have another cache."""

    def blocks(self) -> Iterator[Block]:
        """All rows from the first to the last."""
