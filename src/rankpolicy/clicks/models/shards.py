"""The E step over shards of a log: a map over shards of queries, and a reduction in a fixed order.

How a log is cut depends on the log alone, never on the executor, so parameters are the same bits wherever the shards are counted. The
pairs of a query are in one shard: counts of pairs are put side by side, and only counts of positions and log-likelihoods are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.log_pairs import LogView
from rankpolicy.clicks.models.click_model import ClickModel
from rankpolicy.clicks.models.definition import PAIR, Expectation, Floats, Parameters
from rankpolicy.executors import Executor, Shared
from rankpolicy.kernels import HAS_NUMBA

ExpectStep = Callable[[Parameters], Expectation]
SESSIONS_OF_A_SHARD = 50_000  # different sessions; below, one task would cost more than its counting
MOST_SHARDS = 64


class Shard:
    """Sessions of some queries, in numbers of their own pairs."""

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
    renumbered = np.where(is_known, pairs - first, end - first)
    return Shard(kind, replace(view.of_sessions(sessions), pairs=renumbered, num_pairs=end - first), first)


def e_step(kind: type[ClickModel], view: LogView, executor: Executor) -> ExpectStep:
    """The E step on this log, in one shard or in several that the executor counts."""
    shards = shards_of(kind, view)
    if len(shards) == 1:
        return shards[0].expect
    # Without the sessions of the shards, which the executor may have sent elsewhere.
    ranges = [slice(shard.first_pair, shard.first_pair + shard.view.num_pairs) for shard in shards]
    handles = [executor.share(shard) for shard in shards]
    is_of_pairs = {name: axes == (PAIR,) for name, axes in kind.axes.items()}

    def parameters_of(parameters: Parameters, pairs: slice) -> Parameters:
        """What the sessions of a shard read: the parameters of its pairs, and one more entry for unknown pairs."""
        return {
            name: np.concatenate([values[pairs], values[-1:]]) if is_of_pairs[name] else values
            for name, values in parameters.items()
        }

    def merged(name: str, counts: Sequence[Floats]) -> Floats:
        if not is_of_pairs[name]:
            return np.asarray(tree_sum(counts))
        totals = np.zeros(view.num_pairs + 1)
        for pairs, of_pairs in zip(ranges, counts, strict=True):
            totals[pairs] = of_pairs[:-1]
        totals[-1] = tree_sum([of_pairs[-1] for of_pairs in counts])
        return totals

    def expect(parameters: Parameters) -> Expectation:
        tasks = [(handle, parameters_of(parameters, pairs)) for handle, pairs in zip(handles, ranges, strict=True)]
        counts = executor.map(_expected, tasks)
        return Expectation(
            successes={
                name: merged(name, [of_shard.successes[name] for of_shard in counts]) for name in counts[0].successes
            },
            trials={name: merged(name, [of_shard.trials[name] for of_shard in counts]) for name in counts[0].trials},
            log_likelihood=float(tree_sum([of_shard.log_likelihood for of_shard in counts])),
        )

    return expect


def _expected(task: tuple[Shared[Shard], Parameters]) -> Expectation:
    shard, parameters = task
    return shard.get().expect(parameters)


def tree_sum(terms: Sequence[Any]) -> Any:
    """The sum of neighbours, then of the neighbours of these sums, and so on: the same bits wherever the terms come from.

    >>> tree_sum([1, 2, 3, 4, 5])
    15
    """
    while len(terms) > 1:
        terms = [sum(terms[index : index + 2]) for index in range(0, len(terms), 2)]
    return terms[0]
