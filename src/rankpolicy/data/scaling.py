"""Feature scaling: fitted on training data, saved with the model and applied to all data it ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.encoding import ARRAY_NAMES, FeatureEncoding, fit_encoding
from rankpolicy.data.sparse import SparseFeatures
from rankpolicy.data.stored.features import StoredFeatures
from rankpolicy.display import frozen_value
from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.threads import usable_cpus
from rankpolicy.types import RankPolicyError, unknown_name

Features = NDArray[np.float32]  # (items, features)
Offsets = NDArray[np.int64]  # (queries + 1,)


def unchanged(features: Features, offsets: Offsets | None) -> Features:
    """The features as they are."""
    return features


def minmax_by_query(features: Features, offsets: Offsets | None) -> Features:
    """(x - lowest) / (highest - lowest) over the items of each query, 0 where all are equal: LETOR's QueryLevelNorm."""
    if offsets is None:
        raise RankPolicyError(
            "query_minmax scaling needs to know the queries; got features only. Pass qid or group with them."
        )
    features = np.asarray(features)
    lowest = np.minimum.reduceat(features, offsets[:-1], axis=0)
    spread = np.maximum.reduceat(features, offsets[:-1], axis=0) - lowest
    spread[spread == 0] = 1
    sizes = np.diff(offsets)
    return np.asarray((features - np.repeat(lowest, sizes, axis=0)) / np.repeat(spread, sizes, axis=0))


def symmetric_log(features: Features, offsets: Offsets | None) -> Features:
    """sign(x) log(1 + abs(x)): shortens the long tails of counts, for positive and negative values."""
    if isinstance(features, SparseFeatures | StoredFeatures):
        return features.mapped(lambda stored: symmetric_log(stored, None))
    return np.sign(features) * np.log1p(np.abs(features))


def with_quantiles(features: Features, knots: NDArray[np.float32]) -> Features:
    """Features (items, features) followed by the quantile of each value: (items, 2 * features).

    The quantile of x is the share of the training data below x plus half of the share equal to x, interpolated between ``knots``
    (features, knots). It shows a network how rare a value is, as the splits of a tree do.

    >>> with_quantiles(np.array([[2.0], [0.0], [9.0]], np.float32), np.array([[0.0, 0.0, 0.0, 1.0, 3.0]], np.float32))
    array([[2.   , 0.875],
           [0.   , 0.25 ],
           [9.   , 1.   ]], dtype=float32)
    """
    last = knots.shape[1] - 1
    quantiles = np.empty_like(features)
    for column, sorted_knots in enumerate(knots):
        values = np.clip(features[:, column], sorted_knots[0], sorted_knots[-1])
        first = np.searchsorted(sorted_knots, values, side="left")
        past = np.searchsorted(sorted_knots, values, side="right")
        below = sorted_knots[np.maximum(first - 1, 0)]
        gap = sorted_knots[first] - below
        between = first - 1 + (values - below) / np.where(gap > 0, gap, 1)
        quantiles[:, column] = np.where(past > first, (first + past - 1) / 2, between) / last
    return np.concatenate([features, quantiles], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingKind:
    """One kind of scaling: a transformation, optionally followed by quantiles and standardisation with the training data."""

    # The transformation, a function of features (items, features) and offsets (queries + 1,)
    transform: Callable[[Features, Offsets | None], Features]
    adds_quantiles: bool = False  # Whether the quantile of each value is added as a further feature
    standardizes: bool = False  # Whether features are then shifted and scaled to mean 0 and standard deviation 1
    needs_queries: bool = False  # Whether the transformation looks at all items of a query

    @property
    def array_names(self) -> set[str]:
        """Names of the arrays that a fitted scaling of this kind has."""
        return ({"knots"} if self.adds_quantiles else set()) | ({"center", "spread"} if self.standardizes else set())


SCALINGS = {
    "none": ScalingKind(transform=unchanged),
    "query_minmax": ScalingKind(transform=minmax_by_query, needs_queries=True),
    "standardize": ScalingKind(transform=unchanged, standardizes=True),
    "log1p": ScalingKind(transform=symmetric_log, standardizes=True),
    "quantile": ScalingKind(transform=unchanged, adds_quantiles=True, standardizes=True),
}

_NUM_KNOTS = 257
_MANY_VALUES = 1 << 20  # whose columns are fitted by several threads


@frozen_value(kw_only=True)
class FeatureScaling:
    """A fitted scaling.

    >>> from rankpolicy.data.arrays import from_arrays
    >>> train = from_arrays([[1.0, 7.0], [3.0, 7.0]], group=[2])
    >>> fit_scaling("standardize", train).apply(np.array([[1.0, 7.0], [5.0, 8.0]], np.float32))
    array([[-1.,  0.],
           [ 3.,  0.]], dtype=float32)
    """

    kind: str  # A name of ``SCALINGS``
    # Evenly spaced quantiles of the training data (features, knots), where the kind adds quantiles
    knots: NDArray[np.float32] | None = None
    # Mean and standard deviation of the training data (scaled features,), where the kind standardises; the spread
    # of a constant feature is infinite, so that it becomes 0
    center: NDArray[np.float32] | None = None
    # Mean and standard deviation of the training data (scaled features,), where the kind standardises; the spread
    # of a constant feature is infinite, so that it becomes 0
    spread: NDArray[np.float32] | None = None
    # How missing values and categories were encoded before; None where the training data had none. Its extra
    # columns come last, unscaled
    encoding: FeatureEncoding | None = None

    _quantile_table: Any = field(default=None, init=False, repr=False)  # the knots as the kernel searches them

    def __post_init__(self) -> None:
        if self.encoding is None and self._has_knots_of_all_columns() and HAS_NUMBA:
            from rankpolicy.kernels.quantiles import MOST_KNOTS, quantile_table

            if self.knots is not None and 2 <= self.knots.shape[1] <= MOST_KNOTS:
                object.__setattr__(self, "_quantile_table", quantile_table(self.knots))

    def _has_knots_of_all_columns(self) -> bool:
        """Whether shapes are such as a fit gives, which the kernel relies on; arrays may come from a damaged file."""
        if self.knots is None or self.center is None or self.spread is None:
            return False
        is_float = self.knots.dtype == self.center.dtype == self.spread.dtype == np.float32
        return is_float and self.knots.ndim == 2 and self.center.shape == self.spread.shape == (2 * len(self.knots),)

    @property
    def needs_queries(self) -> bool:
        """Whether ``apply`` needs the offsets of queries."""
        return SCALINGS[self.kind].needs_queries

    def num_scaled(self, num_features: int) -> int:
        """Number of columns of the scaled features."""
        extra = 0 if self.encoding is None else self.encoding.num_extra
        return (2 * num_features if SCALINGS[self.kind].adds_quantiles else num_features) + extra

    def apply(self, features: Features, offsets: Offsets | None = None) -> Features:
        """Scaled features (items, scaled features)."""
        features = np.asarray(features)
        width = features.shape[1] * (2 if SCALINGS[self.kind].adds_quantiles else 1)
        if self.center is not None and width != len(self.center):
            fitted = len(self.center) * features.shape[1] // width
            raise RankPolicyError(
                f"features must have the {fitted} columns the scaling was fitted on; got {features.shape[1]}."
            )
        extra = None
        if self.encoding is not None:
            features, extra = self.encoding.split(features)
        missing = None if extra is not None else _missing_values(features)
        if missing is not None:
            middle = np.float32(0) if self.knots is None else self.knots[:, self.knots.shape[1] // 2]
            features = np.where(missing, middle, features)
        scaled = SCALINGS[self.kind].transform(features, offsets)
        if self._quantile_table is not None and self.center is not None and self.spread is not None:
            from rankpolicy.kernels.quantiles import scaled_with_quantiles

            return scaled_with_quantiles(scaled, self._quantile_table, self.center, self.spread)
        if self.knots is not None:
            scaled = with_quantiles(scaled, self.knots)
        if self.center is not None and self.spread is not None:
            scaled = (scaled - self.center) / self.spread
        if missing is not None and self.knots is None:
            scaled = np.where(missing, np.float32(0), scaled)
        if extra is not None:
            scaled = np.concatenate([scaled, extra], axis=1)
        # Writable, because torch shares the memory and warns when it is read-only.
        return np.require(scaled, np.float32, ["C", "W"])

    def of_finite_rows(self, features: Features) -> Features | None:
        """The scaled features where nothing is to be prepared: all values are finite and every item is scaled on its own; else None."""
        if self.encoding is not None or self.needs_queries or not np.isfinite(features).all():
            return None
        if self._quantile_table is None or self.center is None or self.spread is None:
            return self.apply(features)
        from rankpolicy.kernels.quantiles import scaled_with_quantiles

        return scaled_with_quantiles(features, self._quantile_table, self.center, self.spread)

    def to_arrays(self) -> dict[str, NDArray[np.float32]]:
        """The arrays to save with the kind."""
        encoding = {} if self.encoding is None else self.encoding.to_arrays()
        return {name: getattr(self, name) for name in sorted(SCALINGS[self.kind].array_names)} | encoding

    @classmethod
    def from_arrays(cls, kind: str, arrays: Mapping[str, NDArray[np.float32]]) -> FeatureScaling:
        """The scaling whose arrays ``to_arrays`` returned."""
        encoding = None
        if set(arrays) >= ARRAY_NAMES:
            encoding = FeatureEncoding.from_arrays({name: arrays[name] for name in ARRAY_NAMES})
            arrays = {name: array for name, array in arrays.items() if name not in ARRAY_NAMES}
        expected = scaling_kind(kind).array_names
        if set(arrays) != expected:
            raise RankPolicyError(
                f"scaling {kind!r} is saved as arrays {sorted(expected)}; got {sorted(arrays)}. Is the file damaged?"
            )
        return cls(kind=kind, encoding=encoding, **arrays)


def fit_scaling(kind: str, dataset: RankingDataset) -> FeatureScaling:
    """Fit a scaling to training data."""
    is_plain = dataset.categories is None and _is_complete(dataset.features_by_query)
    encoding = None if is_plain else fit_encoding(dataset)
    raw_features, counts = dataset.features_by_query, None
    if isinstance(raw_features, StoredFeatures) and not scaling_kind(kind).needs_queries:
        # Every value is one of few, each of which counts as often as it occurs.
        raw_features, counts = raw_features.values.T, raw_features.counts()
    complete = raw_features if encoding is None else encoding.split(np.asarray(raw_features))[0]
    features = scaling_kind(kind).transform(complete, dataset.query_offsets)
    arrays: dict[str, NDArray[np.float32]] = {}
    # One column at a time: sums in float64 and sorted values without a second copy of all features.
    levels = np.linspace(0, 1, _NUM_KNOTS)
    knot_ranks = np.rint(levels * (len(dataset.features_by_query) - 1)).astype(np.int64)
    fit_column = partial(_fitted_column, SCALINGS[kind], knot_ranks)
    if counts is not None:
        columns = [fit_column(column, of_column) for column, of_column in zip(features.T, counts, strict=True)]
    elif isinstance(features, np.ndarray) and features.size > _MANY_VALUES:
        with ThreadPoolExecutor(usable_cpus()) as threads:
            columns = list(threads.map(fit_column, features.T))
    else:
        columns = [fit_column(column) for column in features.T]
    knots, of_values, of_quantiles = zip(*columns, strict=True)
    if SCALINGS[kind].adds_quantiles:
        arrays["knots"] = np.array(knots, dtype=np.float32)
    if SCALINGS[kind].standardizes:
        moments = [*of_values, *of_quantiles] if SCALINGS[kind].adds_quantiles else of_values
        center, spread, constant = (np.array(values) for values in zip(*moments, strict=True))
        arrays["center"] = center.astype(np.float32)
        arrays["spread"] = np.where(constant | (spread.astype(np.float32) == 0), np.inf, spread).astype(np.float32)
    return FeatureScaling(kind=kind, encoding=encoding, **arrays)


def restored_scaling(kind: str, arrays: Mapping[str, NDArray[Any]], *, num_features: int) -> FeatureScaling:
    """The scaling whose arrays a file holds, if they are such as a fit gives."""
    scaling = FeatureScaling.from_arrays(kind, arrays)
    # The extra columns of an encoding are not scaled.
    num_extra = 0 if scaling.encoding is None else scaling.encoding.num_extra
    lengths = (num_features, scaling.num_scaled(num_features) - num_extra)
    for name, array in arrays.items():
        if array.dtype != np.float32 or array.ndim not in (1, 2) or len(array) not in lengths or 0 in array.shape:
            raise RankPolicyError(
                f"{name} of the scaling must be float32 numbers for {num_features} features; got {array.dtype} of shape {array.shape}. "
                "Is the file damaged?"
            )
        # The spread of a constant feature is infinite.
        is_right = array > 0 if name == "spread" else np.isfinite(array)
        if not is_right.all():
            raise RankPolicyError(f"{name} of the scaling holds numbers that no data give. Is the file damaged?")
    if "center" in arrays and len(arrays["center"]) != lengths[1]:
        raise RankPolicyError(
            f"the scaling is of other features than the {num_features} of the ranker. Is the file damaged?"
        )
    return scaling


def _missing_values(features: Features) -> NDArray[np.bool_] | None:
    """Where values are missing (items, features); None where none is."""
    # The sum is NaN if a value is: one pass without an array of the size of the features. Large values of opposed signs may give NaN too.
    if not np.isnan(features.sum(dtype=np.float64)):
        return None
    missing = np.isnan(features)
    return missing if missing.any() else None


def _is_complete(features: Any) -> bool:
    """Whether an array without missing values; of other features the encoding knows."""
    return isinstance(features, np.ndarray) and _missing_values(features) is None


def _fitted_column(
    kind: ScalingKind,
    knot_ranks: NDArray[np.int64],
    column: NDArray[np.float32],
    counts: NDArray[np.int64] | None = None,
) -> tuple[Any, Any, Any]:
    """Knots, moments and moments of the quantiles of a column, each None where the kind does not need it.

    Places are those of the knots among the sorted values; counts say how often each value occurs, None: once.
    """
    values = np.ascontiguousarray(column if counts is None else column[counts > 0])
    counts = None if counts is None else counts[counts > 0]
    moments = _moments(values, counts) if kind.standardizes else None
    if not kind.adds_quantiles:
        return None, moments, None
    if counts is None:
        knots = np.sort(values)[knot_ranks]
    else:
        order = np.argsort(values)
        knots = values[order][np.searchsorted(np.cumsum(counts[order]), knot_ranks, side="right")]
    return knots, moments, _moments(_quantiles(values, knots), counts) if kind.standardizes else None


def _quantiles(column: NDArray[np.float32], knots: NDArray[np.float32]) -> NDArray[np.float32]:
    """The quantile of each value of a column."""
    unchanged_values = FeatureScaling(
        kind="quantile", knots=knots[None], center=np.zeros(2, np.float32), spread=np.ones(2, np.float32)
    )
    return np.ascontiguousarray(unchanged_values.apply(column[:, None])[:, 1])


def _moments(column: NDArray[np.float32], counts: NDArray[np.int64] | None) -> tuple[float, float, bool]:
    """Mean and standard deviation in float64, and whether all values are equal."""
    is_constant = bool(column.min() == column.max())
    if counts is None:
        return column.mean(dtype=np.float64), column.std(dtype=np.float64), is_constant
    mean = np.average(column.astype(np.float64), weights=counts)
    return mean, np.sqrt(np.average((column - mean) ** 2, weights=counts)), is_constant


def scaling_kind(kind: str) -> ScalingKind:
    """The kind of scaling with this name."""
    if kind not in SCALINGS:
        raise RankPolicyError(unknown_name("scaling", kind, SCALINGS))
    return SCALINGS[kind]
