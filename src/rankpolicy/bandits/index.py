"""What index policies share: a number for each item, the largest are shown."""

from __future__ import annotations

from dataclasses import dataclass

from rankpolicy.bandits.base import Bandit
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class IndexBandit(Bandit):
    """``best_last`` shows the list in rising order of the index: a user who stops at the first click then tells of more items."""

    best_last: bool = False


@dataclass(kw_only=True, eq=False)
class KLUCBBandit(IndexBandit):
    """Index max {q >= mean : T kl(mean, q) <= log t + c log log t}, c = ``log_log_weight``, mean = clicks / T, T observations."""

    log_log_weight: float = 3.0

    def settings(self) -> tuple[float, ...]:
        return self.log_log_weight, self.best_last

    def _check_settings(self) -> None:
        if self.log_log_weight < 0:
            raise RankPolicyError(f"log_log_weight must be 0 or more; got {self.log_log_weight}.")


@dataclass(kw_only=True, eq=False)
class UCB1Bandit(IndexBandit):
    """Index mean + sqrt(c log t / T), c = ``radius``."""

    radius: float = 1.5

    def settings(self) -> tuple[float, ...]:
        return self.radius, self.best_last

    def _check_settings(self) -> None:
        if self.radius < 0:
            raise RankPolicyError(f"radius must be 0 or more; got {self.radius}.")


@dataclass(kw_only=True, eq=False)
class ThompsonBandit(IndexBandit):
    """Index drawn from Beta(``prior_clicks`` + clicks, ``prior_skips`` + observations without click)."""

    prior_clicks: float = 1.0
    prior_skips: float = 1.0

    def settings(self) -> tuple[float, ...]:
        return self.prior_clicks, self.best_last, self.prior_skips

    def _check_settings(self) -> None:
        check_beta_prior(self.prior_clicks, self.prior_skips)


def check_beta_prior(clicks: float, skips: float) -> None:
    for setting, value in {"prior_clicks": clicks, "prior_skips": skips}.items():
        if value <= 0:
            raise RankPolicyError(f"{setting} must be above 0; got {value}.")
