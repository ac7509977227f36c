"""How a click model is fitted: the settings that fit_click_model, compare_click_models and the command line share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.clicks.models.prior import UNIFORM, PriorChoice
from rankpolicy.declarations.settings import ReadWhen, check_settings, documented, setting
from rankpolicy.types import RankPolicyError

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
