"""How a network is trained."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rankpolicy.types import RankPolicyError, unknown_name

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    epochs: int = 100
    batch_queries: int = 32
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    patience: int | None = 10  # epochs without a better validation score before stopping; None: never
    seed: int = 0

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise RankPolicyError(unknown_name("optimizer", self.optimizer, OPTIMIZERS))
        for name in ("epochs", "batch_queries"):
            if getattr(self, name) < 1:
                raise RankPolicyError(f"{name} must be at least 1; got {getattr(self, name)}.")
        if self.patience is not None and self.patience < 1:
            raise RankPolicyError(
                f"patience must be at least 1 epoch, or None for no early stopping; got {self.patience}."
            )
        if self.learning_rate <= 0 or self.weight_decay < 0:
            raise RankPolicyError(
                f"learning_rate must be above 0 and weight_decay at least 0; got {self.learning_rate} and {self.weight_decay}."
            )
