"""Figure 2: fairness to individual items on real web search, here on MQ2007 and MQ2008 (the paper's Yahoo set is not to be had)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from rankpolicy.data import read_folds
from rankpolicy.evaluation.policy_value import policy_value
from rankpolicy.models import MLP
from rankpolicy.rankers import FairPGRank
from reproductions.target import Claim, Outcome, Row, Setup

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
    for name, folder in DATASETS.items():
        fold = read_folds(setup.folder(folder))[0]
        # A query without relevant items has nothing to trade: its NDCG is 0 and it has no pair of items with merit.
        train, test = (part.drop_queries_without_relevant_items()[0] for part in (fold.train, fold.test))
        if setup.is_smoke:
            train, test = train[:15], test[:15]
        for model, settings in MODELS.items():
            for strength in (0, 1000) if setup.is_smoke else STRENGTHS:
                few = {"epochs": 2} if setup.is_smoke else {}
                ranker = FairPGRank(
                    fairness="individual", reward=REWARD, strength=strength, random_state=setup.seed, **settings | few
                ).fit(train, progress=False)
                row: Row = {"data": name, "model": model, "strength": strength}
                for part, queries in (("train", train), ("test", test)):
                    value = policy_value(ranker, queries, reward=REWARD, fairness="individual")
                    row |= {f"{part}_utility": value.utility, f"{part}_disparity": value.disparity}
                rows.append(row)
                setup.report(
                    f"{name} {model} λ = {strength}: {row['test_utility']:.4f} at {row['test_disparity']:.5f} "
                    f"(train {row['train_utility']:.4f} at {row['train_disparity']:.5f})"
                )
    return Outcome(rows=tuple(rows), claims=_claims(rows), figures={"curves": _curves(rows)})


def _claims(rows: list[Row]) -> tuple[Claim, ...]:
    claims = []
    for name in DATASETS:
        for model in MODELS:
            curve = [row for row in rows if row["data"] == name and row["model"] == model]
            first, last = curve[0], curve[-1]
            claims += [
                Claim(
                    claim=f"{name}, {model}: disparity and NDCG fall with λ, on test data too",
                    paper="Fair-PG-Rank emphasizes lower disparity over higher NDCG as the value of λ increases",
                    ours="test disparity " + ", ".join(f"{row['test_disparity']:.4f}" for row in curve),
                    holds=all(
                        b[key] <= a[key] + 0.02 * first[key]
                        for a, b in pairwise(curve)
                        for key in ("test_disparity", "train_disparity", "train_utility")
                    ),
                ),
                Claim(
                    claim=f"{name}, {model}: disparity goes down to nearly none",
                    paper="with disparity going down to zero eventually",
                    ours=f"test {last['test_disparity']:.5f} of {first['test_disparity']:.4f}, NDCG {last['test_utility']:.4f}",
                    holds=last["test_disparity"] <= NEARLY_NONE * first["test_disparity"],
                ),
            ]
    return tuple(claims)


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
