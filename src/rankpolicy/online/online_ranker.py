"""The face of every ranker that learns online: rank, learn, save. Scores are weighted sums of features."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bundle import write_bundle
from rankpolicy.declarations.arguments import as_float64, checked_path
from rankpolicy.declarations.settings import (
    changed_settings,
    check_settings,
    plain,
    seed_setting,
    setting,
    settings_class,
)
from rankpolicy.display import short_repr
from rankpolicy.metrics.ranked import rank_by_score
from rankpolicy.policies.choices import add_gumbel_noise, log_remaining_weights, ranked_log_weights
from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]
Items = NDArray[np.int64]
Mask = NDArray[np.bool_]
ARRAYS = "arrays.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownLists:
    """Lists that were shown, and what the method needs to learn from their clicks.

    Parameters
    ----------
    rankings
        Items from the top (query, position). A query with fewer items than positions ends with padded items.
    propensities
        Probability of each item given those above it (query, position); None where it has no closed form.
    memo
        Arrays with one row per query that the method reads when it learns.
    """

    rankings: Items
    propensities: Floats | None = None
    memo: Mapping[str, NDArray[Any]] | None = None

    __repr__ = short_repr


@settings_class
class OnlineRanker(ABC):
    """Shows lists of the items of queries, drawn or sorted by x · weights, and learns from their clicks.

    Several queries at once are shown by the same policy; feedback may come late and in batches.
    """

    name: ClassVar[str]

    num_features: int = setting(MISSING, "Number of features of an item.", at_least=1)
    cutoff: int = setting(10, "Length of the lists that are shown.", at_least=1)
    logger: Any = setting(None, "Weights (feature,) of the ranker that serves now, to start from. None: all 0.")
    random_state: int = seed_setting(0, "Seed of the lists that are drawn.")

    def __post_init__(self) -> None:
        check_settings(self)
        start = np.zeros(self.num_features) if self.logger is None else as_float64("logger", self.logger)
        if start.shape != (self.num_features,) or not np.isfinite(start).all():
            raise RankPolicyError(
                f"logger must be one finite weight for each of {self.num_features} features; got shape {start.shape}."
            )
        self.weights: Floats = start.copy()
        self.generator = np.random.default_rng(self.random_state)
        self.num_lists = 0
        self._start()

    @final
    def rank(
        self, features: ArrayLike, *, mask: ArrayLike | None = None, generator: np.random.Generator | None = None
    ) -> ShownLists:
        """Lists to show; nothing is learned.

        Parameters
        ----------
        features
            Features (query, item, feature).
        mask
            True at real items (query, item); None: all are.
        generator
            Source of randomness; None: the ranker's own.
        """
        rows, is_item = self._checked(features, mask)
        return self._rank(rows, is_item, self.generator if generator is None else generator)

    @final
    def learn(
        self, features: ArrayLike, shown: ShownLists, clicks: ArrayLike, *, mask: ArrayLike | None = None
    ) -> None:
        """Learn from the clicks on lists.

        Parameters
        ----------
        features
            Features (query, item, feature) of the queries, as they were ranked.
        shown
            What ``rank`` returned.
        clicks
            0 or 1 (query, position).
        mask
            True at real items (query, item), as it was ranked.
        """
        rows, is_item = self._checked(features, mask)
        marks = np.asarray(clicks, np.float64)
        if marks.shape != shown.rankings.shape or len(marks) != len(rows) or not np.isin(marks, (0, 1)).all():
            raise RankPolicyError(
                f"clicks must be 0 or 1 for each position of each list, shape {shown.rankings.shape} for {len(rows)} queries; "
                f"got shape {marks.shape}."
            )
        self.num_lists += len(rows)
        self._learn(rows, is_item, shown, marks * np.take_along_axis(is_item, shown.rankings, -1))

    def predict(self, features: ArrayLike) -> Floats:
        """Scores (..., item) of the ranker that serves, for sorting.

        Parameters
        ----------
        features
            Features (..., item, feature).
        """
        return np.asarray(as_float64("features", features) @ self.weights)

    @final
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file; ``rp.load(path)`` gives back the ranker, which shows and learns what this one would have.

        Parameters
        ----------
        path
            Where the file goes.
        """
        settings = {name: plain(value) for name, value in changed_settings(self).items()}
        content = {"kind": "online ranker", "online": self.name, "settings": settings}
        write_bundle(Path(checked_path(path)), content, {ARRAYS: self.state()})

    @final
    def state(self) -> bytes:
        """Everything that was learned."""
        from safetensors.numpy import save

        words = self.generator.bit_generator.state["state"]
        generator = [word >> shift & 0xFFFFFFFFFFFFFFFF for word in (words["state"], words["inc"]) for shift in (64, 0)]
        arrays = {"weights": self.weights, "num_lists": np.array([self.num_lists]), **self._arrays()}
        arrays["generator"] = np.array(generator, np.uint64)
        return bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))

    @final
    def restore(self, state: bytes) -> Self:
        """Forget everything, and know what ``state`` returned.

        Parameters
        ----------
        state
            The bytes; others are an error.
        """
        from safetensors.numpy import load

        try:
            arrays = load(state)
            high, low, high_step, low_step = (int(word) for word in arrays["generator"])
            self.generator.bit_generator.state = {
                "bit_generator": "PCG64",
                "state": {"state": high << 64 | low, "inc": high_step << 64 | low_step},
                "has_uint32": 0,
                "uinteger": 0,
            }
            self.weights = arrays["weights"].reshape(self.num_features)
            [self.num_lists] = arrays["num_lists"].tolist()
            self._restore(arrays)
        except Exception as error:  # whatever safetensors and numpy say of bytes that do not fit
            raise RankPolicyError(
                f"the state of {type(self).__name__} must be what state() returned ({error}). Copy or save it again."
            ) from None
        return self

    def _checked(self, features: ArrayLike, mask: ArrayLike | None) -> tuple[Floats, Mask]:
        rows = as_float64("features", features)
        is_item = np.ones(rows.shape[:2], bool) if mask is None else np.asarray(mask, bool)
        if rows.ndim != 3 or rows.shape[2] != self.num_features or is_item.shape != rows.shape[:2]:
            raise RankPolicyError(
                f"features must be (query, item, {self.num_features}) and mask (query, item); got {rows.shape} and {is_item.shape}. "
                "For one query add an axis: features[None]."
            )
        if (is_item[:, 1:] & ~is_item[:, :-1]).any():
            raise RankPolicyError(
                "mask must be True for the first items of each query and False for the padding after them."
            )
        if not np.isfinite(rows).all():
            raise RankPolicyError("features must be finite; got NaN or infinity. Fill missing values.")
        return rows, is_item

    def _start(self) -> None:  # noqa: B027  (most keep weights only)
        """The state before the first list."""

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:  # noqa: B027
        """Take over what ``_arrays`` gave."""

    @abstractmethod
    def _rank(self, features: Floats, mask: Mask, generator: np.random.Generator) -> ShownLists: ...

    @abstractmethod
    def _learn(self, features: Floats, mask: Mask, shown: ShownLists, clicks: Floats) -> None: ...


def restored_online_ranker(manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> OnlineRanker:
    """The online ranker that a file holds."""
    from rankpolicy.online.members import ONLINE_RANKERS

    made: OnlineRanker = ONLINE_RANKERS.named(manifest.get("online"))(**manifest.get("settings", {}))
    return made.restore(files[ARRAYS])


def drawn_rankings(scores: Floats, mask: Mask, cutoff: int, generator: np.random.Generator) -> Items:
    """Lists (query, position) drawn from the Plackett-Luce policy of scores (query, item)."""
    noisy = add_gumbel_noise(scores, num_samples=1, generator=generator)[0]
    return np.asarray(rank_by_score(noisy, mask)[:, :cutoff])


def log_prefix_probabilities(scores: Floats, mask: Mask, rankings: Items) -> Floats:
    """log P(first p items) (query, position) under the Plackett-Luce policy of scores (query, item).

    >>> log_prefix_probabilities(np.log([[3.0, 2.0, 1.0]]), np.ones((1, 3), bool), np.array([[0, 1]])).round(4)  # 1/2, 1/2 * 2/3
    array([[-0.6931, -1.0986]])
    """
    chosen, is_item = ranked_log_weights(scores, mask, rankings)
    steps = np.where(is_item, chosen - log_remaining_weights(scores, mask, rankings), 0.0)
    return np.asarray(np.cumsum(steps, -1))
