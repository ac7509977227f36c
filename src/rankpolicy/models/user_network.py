"""A network of the user's own as a model: a torch module, or a function of the number of features that makes one."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from rankpolicy.declarations.settings import frozen_settings, plain, setting
from rankpolicy.models.layers import RandomModule, global_generator_seeded_by
from rankpolicy.models.model import FeatureModel
from rankpolicy.types import RankPolicyError


class OwnModule(RandomModule):
    """A user's module whose dropout, if it has any, follows the generator of the run."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, features: Tensor) -> Tensor:
        """features (items, features) -> scores (items,)"""
        with global_generator_seeded_by(self.generator if self.training else None):
            scores: Tensor = self.module(features)
        return scores


@final
@frozen_settings
class OwnNetwork(FeatureModel):
    """A torch module from features (items, features) to scores (items,), trained as the library's own networks are."""

    name: ClassVar[str] = "own"

    network: Any = setting(
        None, "The torch module, which is copied, or a function of the number of features that makes one."
    )

    def to_dict(self) -> dict[str, Any]:
        """The name of the module or function; its code is not saved."""
        return {"name": plain(self.network)}

    def new_network_of(self, num_features: int, *, generator: torch.Generator | None = None) -> OwnModule:
        if isinstance(self.network, nn.Module):
            module = copy.deepcopy(self.network)
        else:
            with global_generator_seeded_by(generator):
                module = self.network(num_features)
        if not isinstance(module, nn.Module):
            raise RankPolicyError(
                "a function given as model must return a torch module for a number of features; "
                f"got {type(module).__name__}."
            )
        try:
            with torch.no_grad():
                outcome = f"the shape {tuple(module.eval()(torch.zeros(2, num_features)).shape)}"
        except RuntimeError as error:
            outcome = f"an error ({str(error).splitlines()[0]})"
        if outcome != "the shape (2,)":
            raise RankPolicyError(
                f"a model must give one score per item: features (items, {num_features}) -> scores (items,); two items gave {outcome}. "
                "End it with .squeeze(-1); the ranker's setting scaling decides how many features it reads."
            )
        return OwnModule(module)
