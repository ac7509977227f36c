"""Choice of the weights of a mixed reward by validation data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds, whole_number
from rankpolicy.experiments.selection import Selection, fit_best_of
from rankpolicy.rankers.base import Ranker
from rankpolicy.types import RankPolicyError

LARGEST_DENOMINATOR = 1000


@checked_kinds
def fit_best_mix(
    ranker_class: type[Ranker],
    settings: Mapping[str, Any],
    train: RankingDataset,
    valid: RankingDataset,
    *,
    metrics: Sequence[str],
    denominator: int = 2,
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
    denominator
        Weights are multiples of 1 / denominator that add up to 1: two metrics give 5 mixes with denominator 4, three give 6 with 2.
    progress
        Show a progress bar for each fit; None: when stderr is a terminal.
    """
    if "reward" not in ranker_class.setting_names():
        raise RankPolicyError(f"{ranker_class.__name__} has no reward to mix; BanditRank and PGRank have.")
    whole_number("denominator", denominator, at_least=1, at_most=LARGEST_DENOMINATOR)
    if len(set(metrics)) < 2:
        raise RankPolicyError(f"a mix needs two different metrics; got {', '.join(metrics)}.")
    candidates = [{**settings, "reward": reward} for reward in reward_mixes(metrics, denominator)]
    return fit_best_of(ranker_class, candidates, train, valid, progress=progress)


@checked_kinds
def reward_mixes(metrics: Sequence[str], denominator: int) -> list[str]:
    """All weighted sums of the metrics whose weights are multiples of 1 / denominator and add up to 1.

    Parameters
    ----------
    metrics
        The metrics to mix, by name.
    denominator
        Weights are multiples of one divided by it.

    >>> reward_mixes(["ap", "ndcg@10"], 2)
    ['1*ap', '0.5*ap + 0.5*ndcg@10', '1*ndcg@10']
    """
    whole_number("denominator", denominator, at_least=1, at_most=LARGEST_DENOMINATOR)
    if len(metrics) == 0:
        raise RankPolicyError("metrics must hold at least one metric, such as 'ap'; got none.")
    return [
        " + ".join(f"{share / denominator:g}*{metric}" for metric, share in zip(metrics, shares, strict=True) if share)
        for shares in _shares(len(metrics), denominator)
    ]


def _shares(num_metrics: int, denominator: int) -> Iterator[tuple[int, ...]]:
    """All ways to distribute ``denominator`` over the metrics, those with most for the first metric first."""
    if num_metrics == 1:
        yield (denominator,)
        return
    for first in range(denominator, -1, -1):
        for remaining in _shares(num_metrics - 1, denominator - first):
            yield (first, *remaining)
