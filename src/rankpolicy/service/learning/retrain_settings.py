"""What ``[[retrain]]`` in the configuration says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from typing import Any

from rankpolicy.clicks.position_bias.members import POSITION_BIAS_METHODS
from rankpolicy.declarations.settings import check_settings, documented, setting
from rankpolicy.types import RankPolicyError


@documented
@dataclass(frozen=True, kw_only=True)
class Retrain:
    """A ranker that is learned from the log on a schedule, and promoted if it is better than what is served.

    service.toml:

        [[retrain]]
        policy = "search"
        method = "pg-rank"
        every_hours = 24
        days = 14
        bias = "randomised"
        bias_policy = "random"
    """

    policy: str = setting(MISSING, "The policy under whose name the ranker is served.")
    method: str = setting("pg-rank", "The method, one that learns from relevances.")
    settings: Mapping[str, Any] | None = setting(None, "Settings of the method by name, such as {'epochs': 20}.")
    every_hours: float = setting(24.0, "Hours between one start and the next.", above=0)
    days: float = setting(14.0, "Lists of this many days are learned from.", above=0)
    bias: str = setting("all-pairs", "The method that estimates position bias; 'none' leaves it in.")
    bias_policy: str | None = setting(
        None, "The policy whose lists position bias is estimated on, such as a uniform one; None: all lists."
    )
    promote: str = setting(
        "if better",
        "'if better': where the lower bound of its value minus that of the version that serves is above 0. 'by hand': never; the model "
        "stays in the database.",
        choices=("if better", "by hand"),
    )
    share: float = setting(1.0, "Share of the traffic that it gets when it is promoted.", above=0, at_most=1)
    order_by: str = setting("sorted", "How it orders, as a policy of the kind ranker.", choices=("sorted", "sampled"))
    temperature: float = setting(1.0, "Of sampled lists.", at_least=1e-3, at_most=1e6)
    judged: float = setting(
        0.3,
        "Share of the lists with propensities, the last ones, that it does not learn from and is judged by.",
        above=0,
        below=1,
    )
    fewest_lists: int = setting(1_000, "With fewer lists nothing is learned.", at_least=10)
    prior: float = setting(
        1.0,
        "Examined impressions with the mean click-through that every item of a query has in advance: more shrink items that were rarely "
        "shown towards the mean.",
        at_least=0,
    )
    event: str = setting("click", "The type of event that counts.")
    estimator: str = setting("rips", "Name of the off-policy estimator.")
    level: float = setting(0.95, "Level of the interval.", above=0, below=1)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.bias != "none" and POSITION_BIAS_METHODS.named(self.bias).needs not in (None, "swaps"):
            raise RankPolicyError(f"the method {self.bias} needs more than the log holds: choose another bias.")

    def check_method(self) -> None:
        """Refuse settings that the method does not have; loads what the method needs."""
        from rankpolicy.rankers.members import ranker_class_named

        chosen = ranker_class_named(self.method)
        try:
            chosen(**(self.settings or {}))
        except (RankPolicyError, TypeError) as error:
            raise RankPolicyError(f"retrain, policy {self.policy}: {error}") from None
        if not chosen.learns_from_relevances:
            raise RankPolicyError(
                f"retrain, policy {self.policy}: {self.method} does not learn from relevances estimated from clicks; "
                "regression, pg-rank and auto do."
            )
