"""Weights from a model file, checked against the network that the settings in the file describe."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from rankpolicy.types import RankPolicyError


def check_num_networks(num_networks: int, weights: Mapping[str, Tensor]) -> None:
    """Refuse another number of networks than the weights are of.

    Parameters
    ----------
    num_networks
        The setting of the ranker.
    weights
        The weights by name: ``members.0.output.bias`` is of the first network.
    """
    members = {name.split(".")[1] for name in weights if name.startswith("members.")}
    if len(members) != num_networks:
        raise RankPolicyError(
            f"the file says num_networks={num_networks}, but holds the weights of another network: members.{len(members)} is "
            f"{'missing' if num_networks > len(members) else 'not part of it'}. Copy or train the model again."
        )


def check_weights(network: nn.Module, weights: Mapping[str, Tensor], *, what: str) -> None:
    """Refuse weights of another network or vocabulary, of another kind, and weights that are not finite.

    Parameters
    ----------
    network
        The network; it may be on the device "meta", which has shapes only.
    weights
        The weights by name.
    what
        What the file says it holds, for error messages.
    """
    expected = network.state_dict()
    differ = sorted(set(expected) ^ set(weights))
    if differ:
        raise RankPolicyError(
            f"the file says {what}, but holds the weights of another network: {differ[0]} is "
            f"{'missing' if differ[0] in expected else 'not part of it'}. Train the model again."
        )
    for name, own in expected.items():
        given = weights[name]
        if name.endswith("words.weight") and own.shape != given.shape:
            raise RankPolicyError(
                f"the vocabulary must be the one the network was trained with: it has {own.shape[0]} numbers, "
                f"the network vectors for {given.shape[0]}. Copy or train the model again."
            )
        if own.shape != given.shape or own.dtype != given.dtype:
            raise RankPolicyError(
                f"the file says {what}, but {name} is {given.dtype} of shape {tuple(given.shape)}; that network has "
                f"{own.dtype} of shape {tuple(own.shape)}. Copy or train the model again."
            )
        if given.is_floating_point() and not given.isfinite().all():
            raise RankPolicyError(f"the weights must be finite; {name} holds NaN or infinity. Train the model again.")
