"""Stored features as LightGBM reads data that is not in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.stored.features import StoredFeatures
from rankpolicy.optional import require


def stored_rows(features: StoredFeatures) -> Any:
    """A ``lightgbm.Sequence`` over the rows: LightGBM takes a sample of them for its bins, then all of them in blocks.

    Parameters
    ----------
    features
        The stored features.
    """
    sequence: Any = require("lightgbm", "A tree ranker").Sequence

    class StoredRows(sequence):  # type: ignore[misc]
        batch_size = 4096

        def __len__(self) -> int:
            return len(features)

        def __getitem__(self, rows: Any) -> NDArray[np.float64]:
            if isinstance(rows, int | np.integer):
                rows = [int(rows)]
                return np.asarray(features[rows], np.float64).reshape(-1)
            return np.asarray(features[rows], np.float64)

    return StoredRows()
