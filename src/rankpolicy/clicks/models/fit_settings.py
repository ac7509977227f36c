"""How a click model is fitted: the settings that fit_click_model, compare_click_models and the command line share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.declarations.settings import ReadWhen, check_settings, documented, setting
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

Prior = tuple[float, float]
PriorChoice = tuple[float, ...] | Literal["empirical"] | str | None
UNIFORM: Prior = (1.0, 1.0)


def first_prior(prior: PriorChoice) -> Prior:
    """The pseudo-counts of the first fit: those given, none for None, (1, 1) before an empirical prior is known."""
    if prior is None:
        return (0.0, 0.0)
    return UNIFORM if isinstance(prior, str) else (float(prior[0]), float(prior[1]))


def posterior_mean(successes: NDArray[np.float64], trials: NDArray[np.float64], prior: Prior) -> NDArray[np.float64]:
    """(successes + a) / (trials + a + b), the mean under a Beta(a, b) prior; 1/2 without any trials or prior.

    >>> posterior_mean(np.array([1.0, 0.0]), np.array([2.0, 0.0]), (1.0, 1.0)).tolist()
    [0.5, 0.5]
    """
    total = trials + sum(prior)
    # Successes are sums of differences; rounding errors may take them slightly below 0 or above trials.
    hits = np.minimum(np.maximum(successes, 0.0) + prior[0], total)
    return hits / total if sum(prior) > 0 else np.divide(hits, total, out=np.full(total.shape, 0.5), where=total > 0)


def log_prior(values: NDArray[np.float64], prior: Prior) -> float:
    """What the pseudo-counts add to the log-likelihood, a log(value) + b log(1 - value): posterior_mean maximises the total."""
    if prior == (0.0, 0.0):
        return 0.0
    return float(prior[0] * np.log(values).sum() + prior[1] * np.log1p(-values).sum())


def empirical_prior(successes: NDArray[np.float64], trials: NDArray[np.float64], *, iterations: int = 500) -> Prior:
    """The Beta(a, b) under which these counts are most likely (beta-binomial), by Minka's fixed point (2000):

    a <- a sum(digamma(successes + a) - digamma(a)) / sum(digamma(trials + a + b) - digamma(a + b)), and the same for b with failures.

    >>> a, b = empirical_prior(np.array([2.0, 8.0, 1.0]), np.array([10.0, 10.0, 10.0]))
    >>> 0.3 < a / (a + b) < 0.4
    True
    """
    tried = trials > 0
    s, n = successes[tried], trials[tried]
    if len(s) < 2:
        return UNIFORM
    digamma = require("scipy.special", "An empirical prior").digamma
    alpha = np.ones(2)
    counts = np.maximum(np.stack([s, n - s], -1), 0.0)
    for _ in range(iterations):
        total = alpha.sum()
        numerator = (digamma(counts + alpha) - digamma(alpha)).sum(0)
        denominator = (digamma(n + total) - digamma(total)).sum()
        # Where all rates are equal the likeliest prior is infinite; the bounds keep a finite one.
        updated = np.clip(alpha * numerator / denominator, 1e-3, 1e6)
        if np.allclose(updated, alpha, rtol=1e-8, atol=0.0):
            break
        alpha = updated
    return float(alpha[0]), float(alpha[1])


_BY_EM = ReadWhen(
    condition="the model is fitted by EM, not in closed form",
    holds=lambda settings: CLICK_MODELS[settings.model].uses_em,
)


@documented
@dataclass(frozen=True, kw_only=True)
class ClickFitSettings:
    """How a click model is fitted; checked when made."""

    model: str = setting("pbm", "Name of the click model.", choices=lambda: list(CLICK_MODELS))
    prior: tuple[float, ...] | str | None = setting(
        UNIFORM,
        """Beta prior (a, b) of every parameter, which is estimated as (successes + a) / (trials + a + b). None: maximum likelihood.
        'empirical': fit once with (1, 1), estimate the prior of the attractions from the result, and fit again with it; better where
        most pairs were shown a few times only.""",
        above=0,
        choices=("empirical",),
    )
    iterations: int = setting(
        200,
        "Most iterations of EM. 0 keeps the closed form that dcm and sdbn start from.",
        at_least=0,
        read_when=_BY_EM,
    )
    tolerance: float = setting(
        1e-6,
        "EM ends when an iteration gains less than this in log-likelihood plus log prior per session. 0: after all iterations.",
        at_least=0,
        read_when=_BY_EM,
    )

    def __post_init__(self) -> None:
        kind = CLICK_MODELS.named(self.model)
        check_settings(self, name_of_owner=self.model)
        if isinstance(self.prior, tuple | list) and len(self.prior) != 2:
            raise RankPolicyError(f"prior must be two numbers above 0, 'empirical' or None; got {self.prior!r}.")
        if self.prior == "empirical" and "attraction" not in kind.axes:
            raise RankPolicyError(
                f"prior='empirical' would not be read: it is the prior of attractions, and {self.model} has none. Leave it out."
            )


def settings_by_model(
    names: Sequence[str], *, prior: PriorChoice, iterations: int, tolerance: float
) -> dict[str, ClickFitSettings]:
    """The settings of several models: each is given those that it reads; a changed one that none of them reads is an error."""
    if len(names) == 0:
        raise RankPolicyError("names must hold at least one click model, such as 'pbm'; got none.")
    options: dict[str, Any] = {"prior": prior, "iterations": iterations, "tolerance": tolerance}
    unread = set(options)
    settings_of = {}
    for name in names:
        kind = CLICK_MODELS.named(name)
        is_read = {
            "prior": prior != "empirical" or "attraction" in kind.axes,
            "iterations": kind.uses_em,
            "tolerance": kind.uses_em,
        }
        unread -= {setting for setting in options if is_read[setting]}
        settings_of[name] = ClickFitSettings(
            model=name, **{key: value for key, value in options.items() if is_read[key]}
        )
    for setting_name in unread:
        ClickFitSettings(model=names[0], **{setting_name: options[setting_name]})
    return settings_of
