"""Figure 2: fairness to individual items on real web search, here on MQ2007 and MQ2008 (the paper's Yahoo set is not to be had)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data import read_folds
from rankpolicy.evaluation.policy_value import PolicyValue, policy_value
from rankpolicy.models import MLP
from rankpolicy.rankers import FairPGRank
from reproductions.paired import LEVEL_STEP, better, falling, t_interval
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

# "average NDCG@10 and D_ind (individual disparity) over the test and training (dotted line) datasets for different values of λ", "a linear
# and a neural network model", the network "one hidden layer of size 32" (appendix B.4). Exact gradients here, and minibatches of 32.
MODELS: dict[str, dict[str, Any]] = {
    "linear": {"model": MLP(hidden=()), "epochs": 20, "learning_rate": 1e-2},
    "neural": {"model": MLP(hidden=(32,), dropout=0.0), "epochs": 20, "learning_rate": 3e-3},
}
DATASETS = {"MQ2007": "letor_mq2007", "MQ2008": "letor_mq2008"}
STRENGTHS = (0, 1, 3, 10, 30, 100, 1000)
REWARD = "ndcg@10"
NEARLY_NONE = 0.05  # of the disparity at λ = 0


def run(setup: Setup) -> Outcome:
    rows: list[Row] = []
    claims: list[Claim] = []
    for name, folder in DATASETS.items():
        fold = read_folds(setup.folder(folder))[0]
        # A query without relevant items has nothing to trade: its NDCG is 0 and it has no pair of items with merit.
        train, test = (part.drop_queries_without_relevant_items()[0] for part in (fold.train, fold.test))
        if setup.is_smoke:
            train, test = train[:15], test[:15]
        for model, settings in MODELS.items():
            curve = []
            for strength in (0, 1000) if setup.is_smoke else STRENGTHS:
                few = {"epochs": 2} if setup.is_smoke else {}
                ranker = FairPGRank(
                    fairness="individual", reward=REWARD, strength=strength, random_state=setup.seed, **settings | few
                ).fit(train, progress=False)
                on_train, on_test = (
                    policy_value(ranker, queries, reward=REWARD, fairness="individual") for queries in (train, test)
                )
                curve.append(Trained(strength, on_train, on_test))
                rows.append({"data": name, "model": model, "strength": strength} | curve[-1].to_row())
                setup.report(
                    f"{name} {model} λ = {strength}: {on_test.utility:.4f} at {on_test.disparity:.5f} "
                    f"(train {on_train.utility:.4f} at {on_train.disparity:.5f})"
                )
            claims += _claims(f"{name}, {model}", curve)
    return Outcome(rows=tuple(rows), claims=tuple(claims), figures={"curves": _curves(rows)})


class Trained(NamedTuple):
    """A model at one λ, and what it is worth."""

    strength: float
    train: PolicyValue
    test: PolicyValue

    def to_row(self) -> Row:
        """Means over queries."""
        parts = {"train": self.train, "test": self.test}
        return {
            f"{part}_{name}": round(float(getattr(value, name)), 6)
            for part, value in parts.items()
            for name in ("utility", "disparity")
        }


def _claims(where: str, curve: Sequence[Trained]) -> list[Claim]:
    first, last = curve[0], curve[-1]
    middle = curve[len(curve) // 2]
    emphasises = "Fair-PG-Rank emphasizes lower disparity over higher NDCG as the value of λ increases"
    overlap = "the training and test curves for both NDCG and disparity overlap"
    means = [trained.test.disparity for trained in curve]
    left = t_interval(_disparities(last.test) - NEARLY_NONE * _disparities(first.test))
    listed = ", ".join(f"{mean:.4f}" for mean in means)
    return [
        better(
            f"{where}: test disparity is higher at λ = {first.strength:g} than at λ = {middle.strength:g}",
            _disparities(first.test),
            _disparities(middle.test),
            paper=emphasises,
            unit="queries",
        ),
        better(
            f"{where}: so is test NDCG",
            first.test.utilities,
            middle.test.utilities,
            paper=emphasises,
            unit="queries",
        ),
        falling(
            f"{where}: test disparity falls from each λ to the next, up to the noise",
            [_disparities(trained.test) for trained in curve],
            paper=emphasises,
            ours=listed,
        ),
        Claim(
            claim=f"{where}: disparity goes down to {NEARLY_NONE:.0%} of that without price, or less",
            paper="with disparity going down to zero eventually",
            ours=f"test {last.test.disparity:.5f} of {first.test.disparity:.4f}, NDCG {last.test.utility:.4f}",
            low=left.low,
            high=left.high,
            at_most=0.0,
        ),
        *(_overlap(where, curve, name, overlap) for name in ("NDCG", "disparity")),
    ]


def _overlap(where: str, curve: Sequence[Trained], name: str, paper: str) -> Claim:
    """That training and test queries differ at no λ.

    The interval is that of the number of λ where they do: by 95 % intervals corrected for the number of λ, and by uncorrected ones. A
    difference of less than 1 % of the value without a price is none.
    """
    values = _disparities if name == "disparity" else (lambda value: value.utilities)
    parts = []
    for trained in curve:
        on_train, on_test = (found[~np.isnan(found)] for found in (values(trained.train), values(trained.test)))
        spread = np.sqrt(on_train.var(ddof=1) / len(on_train) + on_test.var(ddof=1) / len(on_test))
        parts.append((trained.strength, float(on_train.mean() - on_test.mean()), float(1.96 * spread)))
    none = LEVEL_STEP * float(np.nanmean(values(curve[0].test)))
    corrected = NormalDist().inv_cdf(1 - 0.025 / len(parts)) / 1.96
    return Claim(
        claim=f"{where}: {name} of training and test queries overlaps at every λ",
        paper=paper,
        ours="training minus test " + ", ".join(f"{mean:+.4f} ± {half:.4f} (λ = {s:g})" for s, mean, half in parts),
        low=sum(abs(mean) > max(corrected * half, none) for _, mean, half in parts),
        high=sum(abs(mean) > max(half, none) for _, mean, half in parts),
        at_most=0,
    )


def _disparities(value: PolicyValue) -> NDArray[np.float64]:
    """The disparity of each query (query,), NaN where it has none."""
    return np.where(value.disparities.is_counted, value.disparities.values, np.nan)


def _curves(rows: list[Row]) -> Any:
    from rankpolicy.reports import figures

    with figures.style():
        figure = figures.new_figure(9.6, 4.2)
        for place, name in enumerate(DATASETS, 1):
            axes = figure.add_subplot(1, 2, place)
            for colour, marker, model in zip(figures.colours(), figures.MARKERS, MODELS, strict=False):
                curve = [row for row in rows if row["data"] == name and row["model"] == model]
                for part, line in (("test", "-"), ("train", ":")):
                    axes.plot(
                        [row[f"{part}_disparity"] for row in curve],
                        [row[f"{part}_utility"] for row in curve],
                        line,
                        color=colour,
                        marker=marker,
                        markersize=5 if part == "test" else 3,
                        label=f"{model}, {part}",
                    )
            axes.set_title(name)
            axes.set_xlabel("individual disparity   (← better)")
            axes.set_ylabel(f"expected {REWARD}   (better →)")
        axes.legend(fontsize=9)
        return figure
