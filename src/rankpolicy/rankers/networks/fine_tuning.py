"""Checks of a ranker whose network another one continues to train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.networks.network import NetworkRanker


def check_network_init(ranker: NetworkRanker, init: Any, train: RankingDataset) -> None:
    """Refuse a ranker that this one cannot continue from: not a fitted network, another network, or other features."""
    from rankpolicy.rankers.networks.network import NetworkRanker

    name = type(ranker).__name__
    if not isinstance(init, NetworkRanker):
        raise RankPolicyError(
            f"init must be a fitted ranker over a network for {name} to continue from; got {type(init).__name__}. "
            "Pass the ranker itself, such as rankpolicy.load(path)."
        )
    init._require_fitted()
    differs = [setting for setting in ("scaling", "num_networks") if getattr(ranker, setting) != getattr(init, setting)]
    if not differs and (
        _unseen_in_shapes(ranker) != _unseen_in_shapes(init)
        or _shapes(ranker._new_network(init._inputs)) != _shapes(init._network)
    ):
        differs = ["model"]
    for setting in differs:
        raise RankPolicyError(
            f"{name} and init must have the same {setting}, so that scaling and weights can be kept; {name} has "
            f"{getattr(ranker, setting)!r:.80}, init {getattr(init, setting)!r:.80}. Set {setting} to that of init."
        )


def _unseen_in_shapes(ranker: NetworkRanker) -> list[Any]:
    """Settings of the model that change what its weights mean, but not their shapes."""
    return [getattr(ranker._model, name, None) for name in ("query_context", "num_heads")]


def _shapes(network: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(weight.shape) for name, weight in network.state_dict().items()}
