"""The Beta prior of Thompson sampling."""

from __future__ import annotations

from dataclasses import dataclass

from rankpolicy.settings import setting


@dataclass(kw_only=True, eq=False)
class BetaPrior:
    """Prior Beta(prior_clicks, prior_skips) of every probability that is drawn."""

    prior_clicks: float = setting(
        1.0, "Clicks imagined before the first list; with prior_skips 1 every click rate is equally likely.", above=0
    )
    prior_skips: float = setting(
        1.0,
        "Observations without a click imagined before the first list. Raise it where most items are rarely clicked.",
        above=0,
    )
