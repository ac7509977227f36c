"""Weights read from a file, compared with the network that is to have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankpolicy.arrays import Array, is_floating, namespace
from rankpolicy.types import RankPolicyError


def check_num_networks(num_networks: int, weights: Mapping[str, Array]) -> None:
    """Refuse another number of networks than the weights are of."""
    members = {name.split(".")[1] for name in weights if name.startswith("members.")}
    if len(members) != num_networks:
        raise RankPolicyError(
            f"the file says num_networks={num_networks}, but holds the weights of another network: members.{len(members)} is "
            f"{'missing' if num_networks > len(members) else 'not part of it'}. Copy or train the model again."
        )


def check_weights(network: Any, weights: Mapping[str, Array], *, what: str) -> None:
    """Refuse weights of another network or vocabulary, of another kind, and weights that are not finite."""
    expected = network.state_dict()
    differ = sorted(set(expected) ^ set(weights))
    if differ:
        raise RankPolicyError(
            f"the file says {what}, but holds the weights of another network: {differ[0]} is "
            f"{'missing' if differ[0] in expected else 'not part of it'}. Train the model again."
        )
    for name, expected_weights in expected.items():
        weight = weights[name]
        if name.endswith("words.weight") and expected_weights.shape != weight.shape:
            raise RankPolicyError(
                f"the vocabulary must be the one the network was trained with: it has {expected_weights.shape[0]} numbers, "
                f"the network vectors for {weight.shape[0]}. Copy or train the model again."
            )
        if expected_weights.shape != weight.shape or expected_weights.dtype != weight.dtype:
            raise RankPolicyError(
                f"the file says {what}, but {name} is {weight.dtype} of shape {tuple(weight.shape)}; that network has "
                f"{expected_weights.dtype} of shape {tuple(expected_weights.shape)}. Copy or train the model again."
            )
        if is_floating(weight) and not namespace(weight).isfinite(weight).all():
            raise RankPolicyError(f"the weights must be finite; {name} holds NaN or infinity. Train the model again.")
