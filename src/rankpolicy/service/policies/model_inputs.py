"""What a saved ranker reads of requests: features, texts, side columns, groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.arrays import from_arrays
from rankpolicy.data.categories import category_text, encoded, recoded
from rankpolicy.optional import require
from rankpolicy.service.domain.messages import Item, RankRequest
from rankpolicy.types import RankPolicyError


class ModelInputs:
    """Reads requests for a ranker."""

    def __init__(self, ranker: Any) -> None:
        self._ranker = ranker

    def given_to(self, method: str, requests: Sequence[RankRequest]) -> Any:
        """What ``predict`` or ``policy`` of the ranker returns for the items of requests, one query per request."""
        groups = [item.group for request in requests for item in request.items]
        options = {"protected": groups} if all(group is not None for group in groups) else {}
        if self._ranker._reads_texts:
            return getattr(self._ranker, method)(self._click_table(requests), **options)
        matrix = self._matrix([item for request in requests for item in request.items])
        categories = {name: tuple(values) for name, values in (self._ranker.categories_ or {}).items()}
        reads_rows_alone = len(requests) == 1 and not options and not categories and not self._ranker._needs_queries
        if method == "predict" and reads_rows_alone:
            return self._ranker.predict(matrix)
        dataset = from_arrays(
            matrix,
            group=[len(request.items) for request in requests],
            feature_names=self._ranker.feature_names_ if categories else None,
        )
        return getattr(self._ranker, method)(replace(dataset, categories=categories or None), **options)

    def _click_table(self, requests: Sequence[RankRequest]) -> Any:
        polars = require("polars", "A ranker of texts")
        rows = [(str(number), request.query, item) for number, request in enumerate(requests) for item in request.items]
        columns: dict[str, list[Any]] = {"session": [], "query_text": [], "item_text": []}
        names = list(dict.fromkeys(name for _, _, item in rows for name in (item.side or {})))
        for session, query, item in rows:
            if not (item.text or "").strip():
                raise RankPolicyError(f"item {item.id!r:.80} must have a text: this model reads texts.")
            columns["session"].append(session)
            columns["query_text"].append(query)
            columns["item_text"].append(item.text)
        for name in names:
            if name in columns or name in ("clicked", "position", "item_id", "user", "timestamp"):
                raise RankPolicyError(f"a side column must not be called {name!r}, which names a role.")
            columns[name] = [(item.side or {}).get(name) for _, _, item in rows]
        return _polars_frame(polars, columns)

    def _matrix(self, items: Sequence[Item]) -> NDArray[np.float64]:
        """Features of items in the order and the codes of the model, NaN where they are missing or a category it does not know."""
        rows = [self._row(item) for item in items]
        categories = self._ranker.categories_ or {}
        names = self._ranker.feature_names_ or [str(number) for number in range(1, self._ranker.num_features_ + 1)]
        if not categories and not any(value is None or isinstance(value, str) for row in rows for value in row):
            return np.array(rows, np.float64)
        matrix = np.empty((len(items), len(names)), np.float64)
        for index, name in enumerate(names):
            values = [row[index] for row in rows]
            if name in categories:
                texts = [category_text(value, categories[name]) for value in values]
                matrix[:, index] = recoded(*encoded(texts), categories[name])
            else:
                matrix[:, index] = _numbers(values, items, name)
        return matrix

    def _row(self, item: Item) -> Sequence[Any]:
        """The values of an item in the order of the model, None where one is missing."""
        names, size, features = self._ranker.feature_names_, self._ranker.num_features_, item.features
        if isinstance(features, list) or (names is None and not isinstance(features, dict)):
            if features is None or len(features) != size:
                came = "none" if features is None else str(len(features))
                raise RankPolicyError(f"item {item.id!r:.80} must have {size} features; it has {came}.")
            return features
        if names is None:
            raise RankPolicyError(f"features of this model have no names: send lists of {size} numbers.")
        # A missing value may be left out, but an item without any feature of the model is a mistake of the caller.
        needed = [name for name in names if features is not None or name not in (self._ranker.categories_ or {})]
        values = (item.side or {}) | (features or {})  # older clients send categories as side columns
        if needed and not any(name in values for name in needed):
            raise RankPolicyError(
                f"item {item.id!r:.80} must have the feature {needed[0]!r:.80}, or another one of this model; it has none."
            )
        return [values.get(name) for name in names]


def _numbers(values: Sequence[Any], items: Sequence[Item], name: object) -> list[float]:
    """Values of a feature as numbers, NaN where they are missing."""
    for value, item in zip(values, items, strict=True):
        if isinstance(value, str):
            raise RankPolicyError(
                f"the feature {name!r:.80} of item {item.id!r:.80} must be a number, or null where it is missing; got {value!r:.80}."
            )
    return [np.nan if value is None else value for value in values]


def _polars_frame(polars: Any, columns: dict[str, list[Any]]) -> Any:
    try:
        return polars.DataFrame(columns)
    except (TypeError, polars.exceptions.PolarsError):
        raise RankPolicyError("a side column must hold values of one kind, numbers or texts, in all items.") from None
