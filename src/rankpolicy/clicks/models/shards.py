"""The E step over shards of a log: a map over shards of queries, and a reduction in a fixed order.

How a log is cut depends on the log alone, never on the executor, so parameters are the same bits wherever the shards are counted. The
pairs of a query are in one shard: counts of pairs are put side by side, and only counts of positions and log-likelihoods are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.base import ClickModel
from rankpolicy.clicks.models.definition import PAIR, Expectation, Parameters
from rankpolicy.executors import Executor, Shared
from rankpolicy.kernels import HAS_NUMBA

ExpectStep = Callable[[Parameters], Expectation]
SESSIONS_OF_A_SHARD = 50_000  # different sessions; below, one task would cost more than its counting
MOST_SHARDS = 64


class Shard:
    """Sessions of some queries, in numbers of their own pairs.

    Parameters
    ----------
    kind
        The click model.
    view
        The sessions.
    first_pair
        The number, in the whole log, of the first pair.
    """

    def __init__(self, kind: type[ClickModel], view: LogView, first_pair: int) -> None:
        self.kind, self.view, self.first_pair = kind, view, first_pair

    @cached_property
    def _summary(self) -> Any:
        return self.kind.summarise(self.view)

    def expect(self, parameters: Parameters) -> Expectation:
        """The E step on these sessions."""
        if HAS_NUMBA:
            return self.kind.expect_compiled(parameters, self._summary)
        return self.kind.expect(parameters, self.view)


def shards_of(kind: type[ClickModel], view: LogView) -> list[Shard]:
    """The log in shards of whole queries with about equally many different sessions."""
    num_shards = max(1, min(MOST_SHARDS, len(view.queries) // SESSIONS_OF_A_SHARD))
    if num_shards == 1:
        return [Shard(kind, view, 0)]
    order = np.argsort(view.queries, kind="stable")
    sorted_queries = view.queries[order]
    even = len(order) * np.arange(1, num_shards) // num_shards
    # Each cut moves to the first session of its query.
    cuts = np.unique(np.searchsorted(sorted_queries, sorted_queries[even], side="left"))
    bounds = np.unique(np.concatenate([[0], cuts, [len(order)]]))
    return [_shard(kind, view, order[start:end]) for start, end in pairwise(bounds)]


def _shard(kind: type[ClickModel], view: LogView, sessions: NDArray[np.intp]) -> Shard:
    pairs, is_known = view.pairs[sessions], view.pairs[sessions] < view.num_pairs
    first = int(pairs[is_known].min()) if is_known.any() else 0
    end = int(pairs[is_known].max()) + 1 if is_known.any() else 0
    own = replace(
        view,
        queries=view.queries[sessions],
        pairs=np.where(is_known, pairs - first, end - first),
        is_shown=view.is_shown[sessions],
        clicks=view.clicks[sessions],
        counts=view.counts[sessions],
        num_pairs=end - first,
    )
    return Shard(kind, own, first)


@dataclass(frozen=True, slots=True)
class _Task:
    shard: Shared[Shard]
    parameters: Parameters


def _expected(task: _Task) -> Expectation:
    return task.shard.get().expect(task.parameters)


class _Slice(NamedTuple):
    first_pair: int
    num_pairs: int


def e_step(kind: type[ClickModel], view: LogView, executor: Executor) -> ExpectStep:
    """The E step on this log.

    Parameters
    ----------
    kind
        The click model.
    view
        The log in pair numbers.
    executor
        Where the shards are counted.
    """
    shards = shards_of(kind, view)
    if len(shards) == 1:
        return shards[0].expect
    slices = [_Slice(shard.first_pair, shard.view.num_pairs) for shard in shards]
    return partial(
        _expect_in_shards, kind, view.num_pairs, slices, [executor.share(shard) for shard in shards], executor
    )


def _expect_in_shards(
    kind: type[ClickModel],
    num_pairs: int,
    slices: Sequence[_Slice],
    shards: Sequence[Shared[Shard]],
    executor: Executor,
    parameters: Parameters,
) -> Expectation:
    tasks = [_Task(shard, _own(kind, parameters, place)) for shard, place in zip(shards, slices, strict=True)]
    found = executor.map(_expected, tasks)
    both = []
    for of_parameter in ("successes", "trials"):
        parts = [getattr(each, of_parameter) for each in found]
        both.append({name: _merged(kind, name, [part[name] for part in parts], slices, num_pairs) for name in parts[0]})
    return Expectation(
        successes=both[0], trials=both[1], log_likelihood=float(tree_sum([each.log_likelihood for each in found]))
    )


def _own(kind: type[ClickModel], parameters: Parameters, place: _Slice) -> dict[str, NDArray[np.float64]]:
    """The parameters that the sessions of a shard read: those of its pairs, and one more entry for unknown pairs."""
    first, end = place.first_pair, place.first_pair + place.num_pairs
    return {
        name: np.concatenate([values[first:end], values[-1:]]) if kind.axes[name] == (PAIR,) else values
        for name, values in parameters.items()
    }


def _merged(
    kind: type[ClickModel],
    name: str,
    parts: Sequence[NDArray[np.float64]],
    slices: Sequence[_Slice],
    num_pairs: int,
) -> NDArray[np.float64]:
    if kind.axes[name] != (PAIR,):
        return np.asarray(tree_sum(parts))
    merged = np.zeros(num_pairs + 1)
    for part, place in zip(parts, slices, strict=True):
        merged[place.first_pair : place.first_pair + place.num_pairs] = part[:-1]
    merged[-1] = tree_sum([part[-1] for part in parts])
    return merged


def tree_sum(parts: Sequence[Any]) -> Any:
    """The sum of neighbours, then of the neighbours of these sums, and so on: the same bits wherever the parts come from.

    >>> tree_sum([1, 2, 3, 4, 5])
    15
    """
    while len(parts) > 1:
        parts = [sum(parts[place : place + 2]) for place in range(0, len(parts), 2)]
    return parts[0]
