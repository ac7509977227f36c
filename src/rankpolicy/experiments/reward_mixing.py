"""Mixing weights of a reward, learned by how the rankers trained on them do on validation data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.experiments.selection import Selection, best_of
from rankpolicy.rankers.base import Ranker
from rankpolicy.types import RankPolicyError


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
    """Fit one ranker for every mix of ``metrics`` whose weights are multiples of 1 / ``parts`` and keep the best on validation data.

    Two metrics in 4 parts are 5 mixes, three in 2 parts are 6. The chosen reward is in ``selection.settings["reward"]``.
    """
    if "reward" not in ranker_class.setting_names():
        raise RankPolicyError(f"{ranker_class.__name__} has no reward to mix; BanditRank and PGRank have.")
    if parts < 1 or len(set(metrics)) < 2:
        raise RankPolicyError(
            f"a mix needs two different metrics and 1 part or more; got {tuple(metrics)} in {parts} parts."
        )
    candidates = [{**settings, "reward": reward} for reward in mixes(metrics, parts)]
    return best_of(ranker_class, candidates, train, valid, progress=progress)


def mixes(metrics: Sequence[str], parts: int) -> list[str]:
    """Every reward that gives each metric a multiple of 1 / ``parts``, the weights adding up to 1.

    >>> mixes(["ap", "ndcg@10"], 2)
    ['1*ap', '0.5*ap + 0.5*ndcg@10', '1*ndcg@10']
    """
    return [
        " + ".join(f"{share / parts:g}*{metric}" for metric, share in zip(metrics, shares, strict=True) if share)
        for shares in _shares(len(metrics), parts)
    ]


def _shares(num_metrics: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Ways to give ``parts`` parts to the metrics, most to the first ones first."""
    if num_metrics == 1:
        yield (parts,)
        return
    for first in range(parts, -1, -1):
        for rest in _shares(num_metrics - 1, parts - first):
            yield (first, *rest)
