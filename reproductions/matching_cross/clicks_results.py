"""Networks compared on the simulated log of product search: arms, rows, claims and figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.evaluation import MetricTable
from rankpolicy.evaluation.bootstrap import bootstrap_interval
from reproductions.paired import EQUIVALENT, LEVEL, PairedInterval, t_interval
from reproductions.statements import Claim
from reproductions.target import Outcome, Row

Array = NDArray[np.float64]


class Arm(NamedTuple):
    """A network, its own settings, and whether its clicks are weighted by inverse propensities."""

    model: str
    settings: tuple[tuple[str, Any], ...] = ()
    is_corrected: bool = True


AS_SHOWN, BEST_POSSIBLE = "as shown (production ranker)", "best possible (true relevance)"
CONCATENATION, LATENT_CROSS, MATCH = "concatenation", "latent cross", "match"
MATCHING_CROSS, NO_CORRECTION = "matching cross", "matching cross without bias correction"
CROSS_NETWORK, DEEP = "cross network, DCN-v2", "deep matching cross"
CROSS_WITH_FOUND = "cross network with words found"
ARMS: dict[str, Arm] = {
    CONCATENATION: Arm("concatenation"),
    LATENT_CROSS: Arm("latent-cross"),
    "concatenation + latent cross": Arm("concatenation-cross"),
    MATCH: Arm("match"),
    MATCHING_CROSS: Arm("matching-cross"),
    CROSS_NETWORK: Arm("cross-network"),
    "matching cross, bilinear": Arm("matching-cross", (("match", "bilinear"),)),
    "matching cross, cosine + product": Arm("matching-cross", (("match", "product-cosine"),)),
    "matching cross, words without n-grams": Arm("matching-cross", (("ngrams", ()),)),
    "matching cross, attention over words": Arm("matching-cross", (("ngrams", ()), ("match", "attention"))),
    "matching cross, product + words found": Arm("matching-cross", (("match", "product-found"),)),
    CROSS_WITH_FOUND: Arm("deep-matching-cross", (("match", "found"),)),
    "cross network with the product": Arm("deep-matching-cross", (("match", "product"),)),
    DEEP: Arm("deep-matching-cross"),
    NO_CORRECTION: Arm("matching-cross", is_corrected=False),
    AS_SHOWN: Arm(""),
    BEST_POSSIBLE: Arm(""),
}
WEIGHTED_MRR, TRUE_NDCG = "weighted MRR", "true NDCG"
MEASURES = (TRUE_NDCG, WEIGHTED_MRR)
LITTLE_MORE = 1.1  # what "minimal" additional time and memory is taken to mean


class Claimed(NamedTuple):
    """A statement that one arm is better than another, or at least as good."""

    ours: str
    theirs: str
    paper: str
    is_better: bool = True

    def __str__(self) -> str:
        return f"{self.ours} is {'better than' if self.is_better else 'at least as good as'} {self.theirs}"


# Fixed before the networks were run on these logs; the summary of the paper at hand prints no numbers.
CLAIMED = (
    Claimed(MATCH, CONCATENATION, "matching the two salient features early makes learning easy"),
    Claimed(MATCH, LATENT_CROSS, "concatenation and latent cross both learn inefficiently"),
    Claimed(MATCHING_CROSS, MATCH, "the structure of MCN: side information modulates the match"),
    Claimed(MATCHING_CROSS, LATENT_CROSS, "latent cross alone learns inefficiently: query and item meet too late"),
    Claimed(
        MATCHING_CROSS,
        CROSS_NETWORK,
        "recent methods for high-order features, used as they are, learn important interactions inefficiently",
        is_better=False,
    ),
    Claimed(DEEP, CROSS_NETWORK, "ours, after the paper's remark that richer ways to match can be used"),
    Claimed(DEEP, CROSS_WITH_FOUND, "ours: the product adds to a cross network that knows which words are found"),
    Claimed(DEEP, MATCHING_CROSS, "ours: richer matches and cross layers add to matching cross"),
    Claimed(
        MATCHING_CROSS,
        NO_CORRECTION,
        "clicks have position bias, which is mitigated by the correction of Wang et al. 2016",
    ),
)


class Cost(NamedTuple):
    """What a network takes for a batch of sessions."""

    training: float  # seconds forward and back
    scoring: float  # seconds forward
    weights: int  # bytes
    activations: int  # bytes that the way back needs


class Measured(NamedTuple):
    """What an arm gave on the test part of one log."""

    clicks: MetricTable  # mrr and success@1 of every click, weighted by the inverse propensity of its rank
    clicked_texts: NDArray[np.int64]  # the query text of every click
    truth: MetricTable  # ndcg of every session
    texts: NDArray[np.int64]  # the query text of every session
    is_new: NDArray[np.bool_]  # (sessions,) whether the text is not asked in training
    propensities: Array  # (position,) as estimated
    valid_score: float | None  # weighted MRR
    learning_rate: float | None
    epochs: int | None  # those of the best validation score
    seconds: float  # of CPU time

    @property
    def score(self) -> float:
        """What the learning rate is chosen by."""
        return self.valid_score or 0.0

    def values(self, measure: str) -> tuple[Array, Array, NDArray[np.int64]]:
        """Values, weights and query texts of the clicks or the sessions of the test part."""
        if measure == WEIGHTED_MRR:
            weights = self.clicks.query_weights
            assert weights is not None, "evaluated with propensities"
            return self.clicks["mrr"], weights, self.clicked_texts
        return self.truth["ndcg"], np.ones(len(self.truth)), self.texts


class Gain(NamedTuple):
    """A mean difference over logs, and two intervals of it."""

    over_texts: tuple[float, float]  # other query texts, the same logs and networks
    over_logs: PairedInterval  # other logs and networks

    @property
    def mean(self) -> float:
        return self.over_logs.mean

    def __str__(self) -> str:
        (low, high), over_logs = self.over_texts, self.over_logs
        return f"{self.mean:+.4f}, over texts [{low:+.4f}, {high:+.4f}], over logs [{over_logs.low:+.4f}, {over_logs.high:+.4f}]"


def gain(ours: Sequence[Measured], theirs: Sequence[Measured], measure: str) -> Gain:
    """The gain of one arm over another, paired by log and by click or session.

    Sessions of one query text resemble each other, so the unit of the bootstrap is the text of a log: its weight is the sum of the
    weights of its clicks or sessions, and every log has the same total. Over logs: Student's t, one number per log.
    """
    differences, weights, by_log = [], [], []
    for one, other in zip(ours, theirs, strict=True):
        values, weight, texts = one.values(measure)
        difference = values - other.values(measure)[0]
        weight = np.where(np.isnan(difference), 0.0, weight)
        difference = np.where(weight > 0, difference, 0.0)
        of_text = np.bincount(texts, weight)
        summed = np.bincount(texts, weight * difference)
        differences.append(np.divide(summed, of_text, out=np.zeros_like(summed), where=of_text > 0))
        weights.append(of_text / of_text.sum())
        by_log.append(float(summed.sum() / of_text.sum()))
    over_texts = bootstrap_interval(
        np.concatenate(differences), query_weights=np.concatenate(weights), level=LEVEL, num_resamples=2000
    )
    return Gain(over_texts, t_interval(by_log))


def outcome(measured: Mapping[str, Sequence[Measured]], costs: Mapping[str, Cost]) -> Outcome:
    """``measured`` holds what each arm gave, log after log in the same order."""
    behind = {
        arm: {measure: gain(measured[CROSS_NETWORK], measured[arm], measure) for measure in MEASURES}
        for arm in measured
        if arm not in (CROSS_NETWORK, AS_SHOWN, BEST_POSSIBLE)
    }
    return Outcome(
        rows=tuple(_row(arm, of_logs, behind.get(arm, {}), costs) for arm, of_logs in measured.items()),
        claims=(
            *(
                _claim(claimed, measure, gain(measured[claimed.ours], measured[claimed.theirs], measure))
                for claimed in CLAIMED
                for measure in MEASURES
            ),
            *_claims_of_costs(costs),
        ),
        figures={"gains": _figure(behind)},
    )


def _row(arm: str, of_logs: Sequence[Measured], behind: Mapping[str, Gain], costs: Mapping[str, Cost]) -> Row:
    row: Row = {
        "arm": arm,
        TRUE_NDCG: _mean(one.truth.means["ndcg"] for one in of_logs),
        f"{TRUE_NDCG}, texts asked in training": _mean(one.truth["ndcg"][~one.is_new].mean() for one in of_logs),
        f"{TRUE_NDCG}, new texts": _mean(one.truth["ndcg"][one.is_new].mean() for one in of_logs),
        WEIGHTED_MRR: _mean(one.clicks.means["mrr"] for one in of_logs),
        "MRR": _mean(_unweighted(one, "mrr") for one in of_logs),
        "success@1": _mean(_unweighted(one, "success@1") for one in of_logs),
    }
    for measure, found in behind.items():
        row[f"behind {CROSS_NETWORK} in {measure}"] = str(found)
    chosen = [one for one in of_logs if one.learning_rate is not None]
    if chosen:
        row |= {
            "validation weighted MRR": _mean(one.score for one in chosen),
            "learning rate": chosen[0].learning_rate,
            "epochs": _mean(one.epochs or 0 for one in chosen),
            "seconds of a fit": _mean(one.seconds for one in chosen),
        }
    if arm in costs:
        row |= {
            f"{name} / {CONCATENATION}": float(value / base)
            for name, value, base in zip(Cost._fields, costs[arm], costs[CONCATENATION], strict=True)
        }
    return row


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _unweighted(one: Measured, metric: str) -> float:
    """The mean over test clicks, each counted alike."""
    assert one.clicks.query_weights is not None, "evaluated with propensities"
    return float(one.clicks[metric][one.clicks.query_weights > 0].mean())


def _claim(claimed: Claimed, measure: str, found: Gain) -> Claim:
    how = (
        "its 95 % intervals, over query texts and over logs, lie above 0"
        if claimed.is_better
        else f"it is less than {EQUIVALENT} behind"
    )
    return Claim(
        claim=f"{claimed} in {measure}: {how}",
        paper=claimed.paper,
        ours=str(found),
        low=min(found.over_texts[0], found.over_logs.low),
        high=max(found.over_texts[1], found.over_logs.high),
        above=0.0 if claimed.is_better else -EQUIVALENT,
    )


def _claims_of_costs(costs: Mapping[str, Cost]) -> tuple[Claim, ...]:
    ours, base = costs[MATCHING_CROSS], costs[CONCATENATION]
    paper = "the product takes minimal additional time and memory in training and inference"
    ratios = {name: value / of_base for name, value, of_base in zip(Cost._fields, ours, base, strict=True)}
    return tuple(
        Claim(
            claim=f"matching cross takes at most {LITTLE_MORE:g} times the {what} of concatenation ({name})",
            paper=paper,
            ours=f"{ratios[name]:.2f}",
            low=ratios[name],
            high=ratios[name],
            at_most=LITTLE_MORE,
        )
        for what, names in (("time", ("training", "scoring")), ("memory", ("weights", "activations")))
        for name in names
    )


def _figure(behind: Mapping[str, Mapping[str, Gain]]) -> Any:
    """How far each arm is behind DCN-v2, with intervals: thick over query texts, thin over logs."""
    from rankpolicy.reports import figures

    with figures.style():
        figure = figures.new_figure(9.6, 1.0 + 0.35 * len(behind))
        for place, measure in enumerate(MEASURES, 1):
            axes = figure.add_subplot(1, 2, place)
            for row, by_measure in enumerate(behind.values()):
                found, colour = by_measure[measure], figures.colours()[0]
                axes.plot([found.over_logs.low, found.over_logs.high], [row, row], color=colour, linewidth=1)
                axes.plot(found.over_texts, [row, row], color=colour, linewidth=4, alpha=0.5, solid_capstyle="butt")
                axes.plot([found.mean], [row], "o", color=colour, markersize=6)
            axes.axvline(0.0, color=figures.INK, linewidth=1, linestyle=":", alpha=0.6)
            axes.set_yticks(range(len(behind)), list(behind) if place == 1 else [""] * len(behind))
            axes.set_ylim(len(behind) - 0.5, -0.5)
            axes.grid(axis="y", visible=False)
            axes.locator_params(axis="x", nbins=5)
            axes.set_xlabel(f"behind DCN-v2 in {measure} (← better)", fontsize=10)
        return figure
