"""An estimate of position bias: the propensity of each rank, its interval, and the data behind it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.display import short_repr
from rankpolicy.files import atomic_write, read_text_bytes
from rankpolicy.types import RankPolicyError, unknown_name

Array = NDArray[np.float64]
FILE_FORMAT, FILE_VERSION = "rankpolicy position bias", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionBias:
    """How likely each rank is examined, relative to the first; made by ``estimate_position_bias``.

    Parameters
    ----------
    method
        The method of estimation, a name of POSITION_BIAS_METHODS.
    propensities
        One number per rank (position,), 1 at the first; NaN where the log does not determine it.
    intervals
        Lower and upper bound of each propensity (position, 2); NaN without resamples.
    level
        Level of the intervals, such as 0.95.
    resampled
        Unit of the bootstrap: "sessions", "queries" or "pairs".
    num_resamples
        Number of bootstrap resamples.
    click_through
        Clicks over impressions of each rank (position,), whatever the method; NaN where nothing was shown.
    num_sessions
        Sessions of the log; impressions for a log of counts.
    num_clicks
        Clicks of the log.
    num_swap_pairs
        (query, item) pairs that were shown at two or more ranks.
    by_segment
        Estimates by segment, for the method "randomised-by-segment".
    feature_weights
        Weights (position, 1 + query feature), for the method "randomised-regression".
    """

    method: str
    propensities: Array
    intervals: Array
    level: float
    resampled: str
    num_resamples: int
    click_through: Array
    num_sessions: int
    num_clicks: int
    num_swap_pairs: int
    by_segment: Mapping[str, PositionBias] = field(default_factory=dict)
    feature_weights: Array = field(default_factory=lambda: np.empty((0, 0)))

    __repr__ = short_repr

    @property
    def is_identified(self) -> NDArray[np.bool_]:
        """Whether the log determines the propensity of each rank (position,)."""
        return ~np.isnan(self.propensities)

    @checked_kinds
    def of_segments(self, segments: Iterable[object]) -> Array:
        """The propensities (row, position) of rows that belong to these segments.

        Parameters
        ----------
        segments
            The segment of each row, such as a session.
        """
        names = [str(segment) for segment in segments]
        for name in names:
            if name not in self.by_segment:
                raise RankPolicyError(unknown_name("segment", name, self.by_segment))
        return np.array([self.by_segment[name].propensities for name in names])

    @checked_kinds
    def of_features(self, query_features: Array) -> Array:
        """The propensities (row, position) of rows with these query features: exp(weights_k . [1, features]).

        Parameters
        ----------
        query_features
            Numbers (row, feature), the features given to ``estimate_position_bias``.
        """
        num_features = self.feature_weights.shape[1] - 1
        if num_features < 0:
            raise RankPolicyError(f"only 'randomised-regression' knows query features; this is {self.method!r}.")
        rows = np.asarray(query_features, np.float64)
        if rows.ndim != 2 or rows.shape[1] != num_features:
            raise RankPolicyError(f"query_features must have the shape (row, {num_features}); got {rows.shape}.")
        return np.asarray(np.exp(np.column_stack([np.ones(len(rows)), rows]) @ self.feature_weights.T), np.float64)

    @checked_kinds
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimate as JSON; ``rankpolicy.load`` and ``read_position_bias`` read it.

        Parameters
        ----------
        path
            The file, such as bias.json; compressed where the name ends in .gz, .bz2 or .zst.
        """
        with atomic_write(path) as file:
            file.write((json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n").encode())

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold and ``from_dict`` reads; None stands for NaN."""
        return {
            "format": FILE_FORMAT,
            "version": FILE_VERSION,
            "method": self.method,
            "propensities": _plain(self.propensities),
            "intervals": [_plain(row) for row in self.intervals],
            "level": self.level,
            "resampled": self.resampled,
            "resamples": self.num_resamples,
            "click_through": _plain(self.click_through),
            "sessions": self.num_sessions,
            "clicks": self.num_clicks,
            "swap_pairs": self.num_swap_pairs,
            "segments": {name: bias.to_dict() for name, bias in self.by_segment.items()},
            "feature_weights": [_plain(row) for row in self.feature_weights],
        }

    @classmethod
    @checked_kinds
    def from_dict(cls, document: Mapping[str, Any]) -> PositionBias:
        """The estimate that ``to_dict`` described.

        Parameters
        ----------
        document
            The values by name.
        """
        if document.get("format") != FILE_FORMAT or document.get("version") != FILE_VERSION:
            raise RankPolicyError(
                f"the document must be a position bias of version {FILE_VERSION}, as to_dict gives; it says "
                f"{document.get('format')!r}, {document.get('version')!r}."
            )
        rows = document["feature_weights"]
        return cls(
            method=document["method"],
            propensities=_numbers(document["propensities"]),
            intervals=np.array([_numbers(row) for row in document["intervals"]]),
            level=document["level"],
            resampled=document["resampled"],
            num_resamples=document["resamples"],
            click_through=_numbers(document["click_through"]),
            num_sessions=document["sessions"],
            num_clicks=document["clicks"],
            num_swap_pairs=document["swap_pairs"],
            by_segment={name: cls.from_dict(segment) for name, segment in document["segments"].items()},
            feature_weights=np.array([_numbers(row) for row in rows]) if rows else np.empty((0, 0)),
        )


def _plain(values: Array) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]


def _numbers(values: list[float | None]) -> Array:
    return np.array([np.nan if value is None else value for value in values], np.float64)


@checked_kinds
def read_position_bias(path: str | os.PathLike[str], *, method: str | None = None) -> PositionBias:
    """The position bias in a bias.json.

    Parameters
    ----------
    path
        The file that ``rankpolicy clicks bias --out`` or ``PositionBias.save`` wrote.
    method
        The method to take, where the file holds the estimates of several.
    """
    file = Path(path)
    by_method = _documents_by_method(file)
    if method is None and len(by_method) > 1:
        raise RankPolicyError(
            f"{file} holds the propensities of several methods, {', '.join(by_method)}: name the one to take."
        )
    if method is not None and method not in by_method:
        raise RankPolicyError(f"{file}: {unknown_name('method', method, by_method)}")
    try:
        return PositionBias.from_dict(next(iter(by_method.values())) if method is None else by_method[method])
    except RankPolicyError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RankPolicyError(
            f"{file} is damaged: its position bias cannot be read ({error!r}). Make it again."
        ) from None


def _documents_by_method(file: Path) -> dict[str, Any]:
    """The estimates in a file, by their method: a file of several, or of one."""
    if not os.path.exists(file):
        raise RankPolicyError(
            f"no file of propensities at {file}. 'rankpolicy clicks bias LOG --out DIR' writes DIR/bias.json."
        )
    try:
        document = json.loads(read_text_bytes(file).tobytes())
    except RankPolicyError:
        raise
    except OSError as error:
        raise RankPolicyError(f"{file} must be a file that can be read; it cannot ({error.strerror}).") from None
    except ValueError as error:
        raise RankPolicyError(
            f"{file} must be JSON, as 'rankpolicy clicks bias' writes; it is not ({error})."
        ) from None
    by_method = None
    if isinstance(document, dict):
        by_method = document.get("methods", {str(document.get("method")): document})
    if not isinstance(by_method, dict) or not by_method:
        raise RankPolicyError(f"{file} must hold a position bias, as 'rankpolicy clicks bias' writes; it holds none.")
    return by_method
