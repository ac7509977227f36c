"""Figure 1: MAP on the test data of MQ2007 after every epoch, BanditRank with γ = 1 and each of six rewards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.folds import Fold
from rankpolicy.experiments.parallel import run_in_processes
from rankpolicy.rankers import BanditRank
from rankpolicy.rankers.networks.bandit_rank import PAPER_REWARDS
from reproductions.banditrank.web_search import PAPER_SETTINGS, random_splits
from reproductions.target import Claim, Outcome, Row, Setup

NUM_SPLITS = 3
# "R1 achieved good measures right from the start": the first epochs are half of those shown here.
NUM_EPOCHS, NUM_FIRST_EPOCHS = 10, 5
METRIC = "map"

Curves = Mapping[str, NDArray[np.float64]]  # by reward, test MAP (split, epoch)


class Study(NamedTuple):
    """What all fits share."""

    splits: list[Fold]
    seed: int
    settings: dict[str, Any]


def run(setup: Setup) -> Outcome:
    splits = random_splits(setup, num_splits=NUM_SPLITS)
    few = {"epochs": 2, "num_samples": 4} if setup.is_smoke else {"epochs": NUM_EPOCHS}
    study = Study(splits, setup.seed, PAPER_SETTINGS | {"gamma": 1.0} | few)
    tasks = [(split, reward) for split in range(len(splits)) for reward in PAPER_REWARDS]
    curves = {reward: np.zeros((len(splits), few["epochs"])) for reward in PAPER_REWARDS}
    for number, curve in run_in_processes(_test_curve, study, tasks, jobs=1 if setup.is_smoke else None):
        split, reward = tasks[number]
        curves[reward][split] = curve
        setup.report(f"{splits[split].name}, {reward}: MAP {curve[0]:.4f} after one epoch, {curve[-1]:.4f} at the end")
    return Outcome(
        rows=tuple(_row(reward, curve) for reward, curve in curves.items()),
        claims=_claims(curves),
        figures={"curves": _figure(curves)},
    )


def _test_curve(study: Study, task: tuple[int, str]) -> list[float]:
    """Test MAP after every epoch. The test data stand where validation data would, to be measured only: no epoch is chosen by them."""
    split = study.splits[task[0]]
    settings = study.settings | {"reward": PAPER_REWARDS[task[1]], "valid_metric": METRIC, "random_state": study.seed}
    ranker = BanditRank().set_params(**settings).fit(split.train, valid=split.test, progress=False)
    [curve] = ranker.evals_result_["valid_0"].values()
    return curve


def _first_epochs(curve: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean MAP of the first epochs (split,): higher is learned faster."""
    return np.asarray(curve[:, :NUM_FIRST_EPOCHS].mean(axis=1))


def _row(reward: str, curve: NDArray[np.float64]) -> Row:
    first = _first_epochs(curve)
    return {
        "reward": reward,
        "expression": PAPER_REWARDS[reward],
        "after 1 epoch": float(curve[:, 0].mean()),
        f"mean of first {NUM_FIRST_EPOCHS}": float(first.mean()),
        "lowest split": float(first.min()),
        "highest split": float(first.max()),
        "last epoch": float(curve[:, -1].mean()),
    }


def _claims(curves: Curves) -> tuple[Claim, ...]:
    right_from_the_start = "R1 achieved good measures right from the start when compared with R2 and R3"
    initial_epochs = "During the initial epochs, R4 was clearly a better performer than R5 and R6"
    pairs = (("R1", "R2"), ("R1", "R3"), ("R4", "R5"), ("R4", "R6"))
    return tuple(
        _faster(curves, better, worse, right_from_the_start if better == "R1" else initial_epochs)
        for better, worse in pairs
    )


def _faster(curves: Curves, better: str, worse: str, paper: str) -> Claim:
    ours, theirs = _first_epochs(curves[better]), _first_epochs(curves[worse])
    return Claim(
        claim=f"{better} learns faster than {worse}: mean test MAP of the first {NUM_FIRST_EPOCHS} epochs",
        paper=paper,
        ours=f"{ours.mean():.4f} against {theirs.mean():.4f}, higher on {(ours > theirs).sum()} of {len(ours)} splits",
        holds=bool(ours.mean() > theirs.mean()),
    )


def _figure(curves: Curves) -> Any:
    from rankpolicy.reports import figures

    with figures.style():
        figure = figures.new_figure(9.6, 4.2)
        for place, rewards in enumerate((("R1", "R2", "R3"), ("R4", "R5", "R6")), 1):
            axes = figure.add_subplot(1, 2, place)
            for colour, marker, reward in zip(figures.colours(), figures.MARKERS, rewards, strict=False):
                curve = curves[reward]
                epochs = np.arange(1, curve.shape[1] + 1)
                axes.plot(
                    epochs,
                    curve.mean(axis=0),
                    color=colour,
                    marker=marker,
                    markersize=4,
                    label=f"{reward} = {PAPER_REWARDS[reward]}",
                )
                # Splits differ more in level than rewards do: the band is how a reward differs from the mean of all, by split.
                axes.fill_between(epochs, *_spread(curves, reward), color=colour, alpha=0.15, linewidth=0)
            axes.set_xlabel("epoch")
            axes.set_ylabel("test MAP   (better →)")
            axes.legend(fontsize=9, loc="lower right")
        return figure


def _spread(curves: Curves, reward: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lowest and highest over splits (epoch,), after each split's level, its mean over all rewards and epochs, is taken out."""
    levels = np.mean(list(curves.values()), axis=(0, 2))
    curve = curves[reward] - (levels - levels.mean())[:, None]
    return curve.min(axis=0), curve.max(axis=0)
