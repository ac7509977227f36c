"""How well click models predict the clicks of sessions that they were not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks import CLICK_MODELS, compare_click_models
from reproductions.clicks.clara2_log import GradedLog, pages_of
from reproductions.paired import better
from reproductions.statements import Claim
from reproductions.target import Row

LOG_LIKELIHOOD, PERPLEXITY = "log_likelihood_per_page", "perplexity"
IMPOSSIBLE = "impossible_pages"
Folds = dict[str, dict[str, NDArray[np.float64]]]  # model -> measure -> (fold,)
KNOWN = "to expect: it has the other as a special case, or more parameters for the user"
# (better, worse) by log-likelihood; the cascade model rules out pages with two clicks, so that it has none.
LIKELIER = (
    *((model, "gctr") for model in ("rctr", "dctr", "pbm", "dcm", "ccm", "sdbn", "dbn", "ubm")),
    ("pbm", "rctr"),
    ("pbm", "dctr"),
    ("ubm", "pbm"),
    ("dbn", "pbm"),
    ("dbn", "sdbn"),
    ("ccm", "dcm"),
    ("ubm", "dcm"),
    ("ubm", "ccm"),
    ("ubm", "sdbn"),
    ("ubm", "dbn"),
)
LESS_PERPLEXED = (
    *(("ubm", other) for other in ("rctr", "dctr", "pbm", "cm", "dcm", "ccm", "sdbn", "dbn")),
    ("dbn", "cm"),
)


def held_out(graded: GradedLog, *, num_folds: int, seed: int, report: Callable[[str], None]) -> Folds:
    """Every click model fitted to all folds but one and measured on that one; all pages of a session are in the same fold.

    Parameters
    ----------
    graded
        The log.
    num_folds
        Number of folds.
    seed
        Seed of the split.
    report
        Called with a line about every fold.
    """
    shuffled = np.random.default_rng(seed).permutation(int(graded.sessions.max()) + 1)
    fold_of_page = (shuffled % num_folds)[graded.sessions]
    found: Folds = {name: {LOG_LIKELIHOOD: [], PERPLEXITY: [], IMPOSSIBLE: []} for name in CLICK_MODELS}  # type: ignore[dict-item]
    for fold in range(num_folds):
        train, test = (
            pages_of(graded.log, np.flatnonzero(part)) for part in (fold_of_page != fold, fold_of_page == fold)
        )
        for name, kind in CLICK_MODELS.items():
            settings: dict[str, Any] = {"prior": "empirical"} if "attraction" in kind.axes else {}
            measured = compare_click_models([name], train, test, **settings).models[name]
            values = (measured.log_likelihood / test.num_sessions, measured.perplexity.overall, measured.num_impossible)
            for measure, value in zip((LOG_LIKELIHOOD, PERPLEXITY, IMPOSSIBLE), values, strict=True):
                found[name][measure].append(value)  # type: ignore[attr-defined]
        report(f"held-out clicks, fold {fold + 1} of {num_folds}")
    return {name: {measure: np.array(values) for measure, values in of.items()} for name, of in found.items()}


def held_out_rows(folds: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> list[Row]:
    """Means over folds; no log-likelihood where a page is impossible."""
    return [
        {
            "part": "held-out clicks",
            "method": name,
            LOG_LIKELIHOOD: round(float(of[LOG_LIKELIHOOD].mean()), 4) if not of[IMPOSSIBLE].any() else None,
            PERPLEXITY: round(float(of[PERPLEXITY].mean()), 4),
            IMPOSSIBLE: int(of[IMPOSSIBLE].sum()),
        }
        for name, of in folds.items()
    ]


def held_out_claims(folds: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> tuple[Claim, ...]:
    """Pairs of models compared fold by fold."""
    return (
        *(
            better(
                f"held-out log-likelihood per page: {one} above {other}",
                folds[one][LOG_LIKELIHOOD],
                folds[other][LOG_LIKELIHOOD],
                paper=KNOWN,
                unit="folds",
            )
            for one, other in LIKELIER
        ),
        *(
            better(
                f"held-out perplexity, sign reversed: {one} above {other}",
                -folds[one][PERPLEXITY],
                -folds[other][PERPLEXITY],
                paper=KNOWN,
                unit="folds",
            )
            for one, other in LESS_PERPLEXED
        ),
    )
