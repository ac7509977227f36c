"""How a network is trained."""

from __future__ import annotations

from dataclasses import dataclass

from rankpolicy.settings import check_settings, documented, setting


@documented
@dataclass(kw_only=True, eq=False)
class TrainingSettings:
    """How a network is trained: by AdamW on shuffled batches of queries, stopped by the score on validation data.

    Rankers over networks have the same settings.
    """

    epochs: int = setting(
        100, "Passes over the training data; with validation data training may stop earlier.", at_least=1
    )
    batch_queries: int = setting(
        32, "Queries per step. Smaller batches take more, noisier steps per epoch; larger ones are faster.", at_least=1
    )
    learning_rate: float = setting(
        1e-3, "Step size of AdamW. Lower it when the loss jumps; raise it when it barely moves.", above=0
    )
    weight_decay: float = setting(
        0.0,
        "How strongly weights are pulled towards 0; 1e-4 to 1e-2 helps against overfitting on little data.",
        at_least=0,
    )
    patience: int | None = setting(
        15,
        "With validation data: epochs without a better score before training stops. None: never stop early.",
        at_least=1,
    )
    random_state: int | None = setting(
        0, "Seed of initial weights, order of queries, dropout and sampled rankings. None draws a new one each time."
    )

    def __post_init__(self) -> None:
        check_settings(self)
