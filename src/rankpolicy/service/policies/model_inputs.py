"""What a saved ranker reads of requests: features, texts, side columns, groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.optional import require
from rankpolicy.service.messages import Item, RankRequest
from rankpolicy.types import RankPolicyError


class ModelInputs:
    """Reads requests for a ranker.

    Parameters
    ----------
    ranker
        A fitted ranker.
    """

    def __init__(self, ranker: Any) -> None:
        self._ranker = ranker

    def given_to(self, method: str, requests: Sequence[RankRequest]) -> Any:
        """What ``predict`` or ``policy`` of the ranker returns for the items of requests, one query per request.

        Parameters
        ----------
        method
            The name of the method.
        requests
            Requests with at least one item each.
        """
        items = [item for request in requests for item in request.items]
        groups = [item.group for item in items]
        more = {"protected": groups} if all(group is not None for group in groups) else {}
        if self._ranker._reads_texts:
            return getattr(self._ranker, method)(self._click_table(requests), **more)
        data = self._frame(items) if self._ranker.categories_ else self._matrix(items)
        if method == "predict" and len(requests) == 1 and not more and not self._ranker._needs_queries:
            return self._ranker.predict(data)
        return getattr(self._ranker, method)(data, group=[len(request.items) for request in requests], **more)

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

    def _frame(self, items: Sequence[Item]) -> Any:
        """Numbers from ``features``, categories from ``side``."""
        polars = require("polars", "A ranker of categories")
        columns: dict[str, list[Any]] = {}
        for name in self._ranker.feature_names_:
            source = "side" if name in self._ranker.categories_ else "features"
            columns[name] = [(dict(getattr(item, source) or {})).get(name) for item in items]
            if source == "features" and None in columns[name]:
                raise RankPolicyError(_missing(items[columns[name].index(None)], name))
        frame = _polars_frame(polars, columns)
        return frame.with_columns(
            polars.col(list(self._ranker.categories_)).cast(polars.String).cast(polars.Categorical)
        )

    def _matrix(self, items: Sequence[Item]) -> NDArray[np.float64]:
        return np.array([self._row(item) for item in items], np.float64)

    def _row(self, item: Item) -> list[float]:
        names, size = self._ranker.feature_names_, self._ranker.num_features_
        given = item.features
        if isinstance(given, dict):
            if names is None:
                raise RankPolicyError(f"features of this model have no names: send lists of {size} numbers.")
            missing = [name for name in names if name not in given]
            if missing:
                raise RankPolicyError(_missing(item, missing[0]))
            return [given[name] for name in names]
        if given is None or len(given) != size:
            came = "none" if given is None else str(len(given))
            raise RankPolicyError(f"item {item.id!r:.80} must have {size} features; it has {came}.")
        return given


def _missing(item: Item, name: str) -> str:
    return f"item {item.id!r:.80} must have the feature {name!r:.80}."


def _polars_frame(polars: Any, columns: dict[str, list[Any]]) -> Any:
    try:
        return polars.DataFrame(columns)
    except (TypeError, polars.exceptions.PolarsError):
        raise RankPolicyError("a side column must hold values of one kind, numbers or texts, in all items.") from None
