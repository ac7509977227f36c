"""One stream of users against one ranker that learns online, in batches as feedback comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.online import ONLINE_RANKERS, OnlineRanker
from reproductions.online.environment import CUTOFF, Environment
from reproductions.online.users import Users

Floats = NDArray[np.float64]
MOST_LISTS = 100  # of a batch; a fiftieth of the lists so far, so that the first are learned one by one


class Batch(NamedTuple):
    """Lists that were shown and learned from."""

    num_lists: int  # since the beginning
    num_clicks: int
    features: Floats
    mask: NDArray[np.bool_]
    grades: NDArray[np.int64]  # (query, item)
    rankings: NDArray[np.int64]

    def shown_grades(self, rankings: NDArray[np.int64]) -> NDArray[np.int64]:
        """Grades (query, position) of lists of these queries; -1 where there is no item."""
        return grades_of(self.grades, self.mask, rankings)


def grades_of(grades: NDArray[np.int64], mask: NDArray[np.bool_], rankings: NDArray[np.int64]) -> NDArray[np.int64]:
    """Grades (query, position) of lists; -1 where there is no item."""
    return np.where(np.take_along_axis(mask, rankings, 1), np.take_along_axis(grades, rankings, 1), -1)


def made(method: str, environment: Environment, seed: int, **settings: Any) -> OnlineRanker:
    """A ranker that starts from the logger."""
    return ONLINE_RANKERS.named(method)(
        num_features=environment.train.features.shape[2],
        cutoff=CUTOFF,
        logger=environment.logger,
        random_state=seed,
        **settings,
    )


def stream(ranker: OnlineRanker, environment: Environment, users: list[Users], seed: int) -> Iterator[Batch]:
    """Batches without end; ``users`` holds the users of the moment, and may be changed between batches."""
    generator = np.random.default_rng([seed, 1])
    queries, num_lists, num_clicks = environment.train, 0, 0
    while True:
        chosen = generator.integers(len(queries.mask), size=min(MOST_LISTS, max(1, num_lists // 50)))
        width = int(queries.mask[chosen].sum(1).max())
        features, mask = queries.features[chosen, :width], queries.mask[chosen, :width]
        grades = queries.grades[chosen, :width]
        shown = ranker.rank(features, mask=mask)
        clicks = users[0].clicks(grades_of(grades, mask, shown.rankings), generator)
        ranker.learn(features, shown, clicks, mask=mask)
        num_lists, num_clicks = num_lists + len(chosen), num_clicks + int(clicks.sum())
        yield Batch(num_lists, num_clicks, features, mask, grades, shown.rankings)
