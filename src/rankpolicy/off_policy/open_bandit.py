"""The Open Bandit Dataset (Saito et al. 2021): two policies on the page of a fashion shop, with their true propensities."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.files import read_text_bytes
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError, unknown_name

BEHAVIORS = ("random", "bts")
CAMPAIGNS = ("all", "men", "women")
COLUMNS = ("item_id", "position", "click", "propensity_score")


@checked_kinds
def read_open_bandit(
    folder: str | os.PathLike[str], *, behavior: str = "random", campaign: str = "all"
) -> OffPolicyLog:
    """Read the log of one policy on one campaign.

    The data have one row per shown item and do not say which rows were on one page. So a round is one row with one position, and its place
    on the page (0, 1 or 2) is the context. For such lists the estimators over whole lists, prefixes and single positions agree.

    Parameters
    ----------
    folder
        The folder of the dataset, with the subfolders random and bts.
    behavior
        The logging policy: "random" or "bts" (Bernoulli Thompson sampling).
    campaign
        "all", "men" or "women".
    """
    for name, kind, choices in ((behavior, "behavior", BEHAVIORS), (campaign, "campaign", CAMPAIGNS)):
        if name not in choices:
            raise RankPolicyError(unknown_name(kind, name, choices))
    polars = require("polars", "The Open Bandit Dataset")
    plain = Path(folder, behavior, campaign, f"{campaign}.csv")
    path = plain if plain.is_file() else plain.with_name(f"{campaign}.csv.gz")
    try:
        frame = polars.read_csv(read_text_bytes(path).tobytes(), columns=list(COLUMNS))
    except polars.exceptions.PolarsError as error:
        raise RankPolicyError(
            f"{path} must be a CSV file with the columns {', '.join(COLUMNS)}; it cannot be read "
            f"({str(error).splitlines()[0]})."
        ) from None
    propensities = frame["propensity_score"].to_numpy().astype(np.float64)[:, None]
    return OffPolicyLog(
        items=frame["item_id"].to_numpy()[:, None],
        rewards=frame["click"].to_numpy()[:, None],
        contexts=frame["position"].to_numpy() - 1,
        propensities=propensities,
        marginal_propensities=propensities,
    )
