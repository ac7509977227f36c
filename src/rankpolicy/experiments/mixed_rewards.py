"""Choice of the weights of a mixed reward by validation data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds, whole_number
from rankpolicy.experiments.selection import Selection, fit_best_of
from rankpolicy.rankers.base import Ranker
from rankpolicy.types import RankPolicyError

MOST_PARTS = 1000


@checked_kinds
def fit_best_mix(
    ranker_class: type[Ranker],
    settings: Mapping[str, Any],
    train: RankingDataset,
    valid: RankingDataset,
    *,
    metrics: Sequence[str],
    parts: int = 2,
    progress: bool | None = None,
) -> Selection:
    """Fit one ranker for every weighted mix of metrics as its reward and keep the best on validation data.

    The chosen reward is ``selection.settings["reward"]``.

    Parameters
    ----------
    ranker_class
        The class of the ranker; it must have a setting ``reward``, as PGRank and BanditRank do.
    settings
        The other settings of the ranker.
    train, valid
        Training and validation data.
    metrics
        The metrics to mix, at least two different ones.
    parts
        Weights are multiples of 1 / parts that add up to 1: two metrics in 4 parts give 5 mixes, three in 2 parts give 6.
    progress
        Show a progress bar for each fit; None: when stderr is a terminal.
    """
    if "reward" not in ranker_class.setting_names():
        raise RankPolicyError(f"{ranker_class.__name__} has no reward to mix; BanditRank and PGRank have.")
    whole_number("parts", parts, at_least=1, at_most=MOST_PARTS)
    if len(set(metrics)) < 2:
        raise RankPolicyError(f"a mix needs two different metrics; got {', '.join(metrics)}.")
    candidates = [{**settings, "reward": reward} for reward in reward_mixes(metrics, parts)]
    return fit_best_of(ranker_class, candidates, train, valid, progress=progress)


@checked_kinds
def reward_mixes(metrics: Sequence[str], parts: int) -> list[str]:
    """All weighted sums of the metrics whose weights are multiples of 1 / parts and add up to 1.

    Parameters
    ----------
    metrics
        The metrics to mix, by name.
    parts
        The number of parts that are distributed over the metrics.

    >>> reward_mixes(["ap", "ndcg@10"], 2)
    ['1*ap', '0.5*ap + 0.5*ndcg@10', '1*ndcg@10']
    """
    whole_number("parts", parts, at_least=1, at_most=MOST_PARTS)
    if len(metrics) == 0:
        raise RankPolicyError("metrics must hold at least one metric, such as 'ap'; got none.")
    return [
        " + ".join(f"{share / parts:g}*{metric}" for metric, share in zip(metrics, shares, strict=True) if share)
        for shares in _shares(len(metrics), parts)
    ]


def _shares(num_metrics: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to distribute ``parts`` over the metrics, those with most for the first metric first."""
    if num_metrics == 1:
        yield (parts,)
        return
    for first in range(parts, -1, -1):
        for remaining in _shares(num_metrics - 1, parts - first):
            yield (first, *remaining)
