"""The study of three vectors: which way to join query, item and side information learns that the first two have to be multiplied."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from rankpolicy.models import MODELS
from rankpolicy.models.text_and_side import TextAndSideModel
from reproductions.paired import t_interval
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

SIZE = 20  # "three vectors of 20 dimensions"
NUM_ROWS = 1000  # "1,000 rows each as training, validation and test data"
NUM_LAYERS = 3  # "the input of a neural network of three layers"
# The paper's three arms: "concatenate f1, f2, f3"; "latent cross (f2 and f3 as input, f1 multiplied with the output)"; "the Hadamard
# product of f1 and f2, then concatenated with f3". The two others are ours.
ARMS = {
    "match": "match, then concatenate",
    "concatenation": "concatenation",
    "latent-cross": "latent cross",
    "matching-cross": "matching cross (past the paper)",
    "cross-network": "cross network, DCN-v2 (past the paper)",
}
# Ours, the same for every arm; of the grid each takes what gives its highest mean validation accuracy.
NUM_SEEDS, EPOCHS, BATCH_ROWS = 10, 50, 100
LEARNING_RATES, WEIGHT_DECAYS = (1e-3, 3e-3, 1e-2), (0.0, 1.0)
WIDTH = 100  # of a hidden layer of concatenation, whose number of parameters the others are given
LEAST_ACCURACY, LEAST_GAP = 0.90, 0.15  # what "both learn inefficiently" is taken to mean
VALIDATION, TEST = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Rows of three vectors and their labels, for every seed."""

    query: Tensor  # (seed, row, SIZE)
    item: Tensor
    side: Tensor
    labels: Tensor  # (seed, row)

    @classmethod
    def draw(cls, num_rows: int, *, generators: Sequence[torch.Generator], device: str = "cpu") -> Vectors:
        # "uniform on (-1, +1) ... y = 1 if the cosine similarity of f1 and f2 is greater than 0, otherwise y = 0"
        drawn = [2 * torch.rand(3, num_rows, SIZE, generator=generator) - 1 for generator in generators]
        query, item, side = torch.stack(drawn, 1).to(device)
        return cls(query, item, side, (nn.functional.cosine_similarity(query, item, dim=-1) > 0).float())

    def take(self, rows: Tensor) -> Vectors:
        """These rows (seed, row), of each seed its own."""
        seeds = torch.arange(len(rows), device=rows.device)[:, None]
        return Vectors(
            self.query[seeds, rows], self.item[seeds, rows], self.side[seeds, rows], self.labels[seeds, rows]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """One arm with the settings that its validation accuracy chose."""

    width: int
    num_parameters: int
    learning_rate: float
    weight_decay: float
    accuracy: NDArray[np.float64]  # (seed, epoch, validation or test)

    @property
    def last(self) -> NDArray[np.float64]:
        """Test accuracy (seed,) after the last epoch."""
        return self.accuracy[:, -1, TEST]

    @property
    def at_best(self) -> NDArray[np.float64]:
        """Validation and test accuracy (seed, 2) after the epoch of the highest validation accuracy, the first of equal ones."""
        best = self.accuracy[:, :, VALIDATION].argmax(1)
        return np.asarray(self.accuracy[np.arange(len(best)), best])


def run(setup: Setup) -> Outcome:
    seeds = range(setup.seed, setup.seed + (2 if setup.is_smoke else NUM_SEEDS))
    learned = {}
    for arm in ARMS:
        learned[arm] = _learned(arm, seeds, setup)
        setup.report(f"{ARMS[arm]}: test accuracy {_with_error(learned[arm].last)}")
    return Outcome(
        rows=tuple(_row(ARMS[arm], found) for arm, found in learned.items()),
        claims=_claims(learned),
        figures={"learning_curves": _figure(learned)},
    )


def num_parameters(arm: str, width: int) -> int:
    with torch.device("meta"):
        return sum(weight.numel() for weight in _network(arm, width).parameters())


def width_of_equal_size(arm: str) -> int:
    """The greatest width with no more parameters than concatenation has: arms differ in how many inputs they read."""
    size = num_parameters("concatenation", WIDTH)
    return bisect_right(range(2 * WIDTH), size, lo=1, key=lambda width: num_parameters(arm, width)) - 1


def _network(arm: str, width: int) -> nn.Module:
    model = MODELS[arm](hidden=(width,) * NUM_LAYERS, dropout=0.0)  # type: ignore[call-arg]  # every such model has these
    assert isinstance(model, TextAndSideModel)
    return model.new_core(SIZE, SIZE)


def _learned(arm: str, seeds: Sequence[int], setup: Setup) -> Learned:
    width = width_of_equal_size(arm)
    grid = [(3e-3, 0.0)] if setup.is_smoke else list(product(LEARNING_RATES, WEIGHT_DECAYS))
    tried = [
        Learned(
            width, num_parameters(arm, width), *settings, _accuracies(arm, width, *settings, seeds=seeds, setup=setup)
        )
        for settings in grid
    ]
    return max(tried, key=lambda found: found.at_best[:, VALIDATION].mean())


def _accuracies(
    arm: str, width: int, learning_rate: float, weight_decay: float, *, seeds: Sequence[int], setup: Setup
) -> NDArray[np.float64]:
    """Validation and test accuracy (seed, epoch, 2); the data and the order of the rows depend on the seed alone.

    The networks of all seeds are trained at once. They share no weight, and Adam treats every weight by itself: it is as if each were
    trained alone.
    """
    num_rows, epochs = (200, 3) if setup.is_smoke else (NUM_ROWS, EPOCHS)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    train, valid, test = (Vectors.draw(num_rows, generators=generators, device=setup.device) for _ in range(3))
    network, weights = _networks(arm, width, seeds, setup.device)
    optimizer = torch.optim.AdamW(weights.values(), lr=learning_rate, weight_decay=weight_decay, fused=True)

    def scores(data: Vectors) -> Tensor:
        scores: Tensor = torch.vmap(partial(functional_call, network))(weights, (data.query, data.item, data.side))
        return scores

    @torch.no_grad()
    def accuracy(data: Vectors) -> NDArray[np.float64]:
        return ((scores(data) > 0) == (data.labels > 0)).double().mean(1).cpu().numpy()

    accuracies = []
    for _ in range(epochs):
        order = torch.stack([torch.randperm(num_rows, generator=generator) for generator in generators])
        for rows in order.to(setup.device).split(BATCH_ROWS, dim=1):
            batch = train.take(rows)
            losses = nn.functional.binary_cross_entropy_with_logits(scores(batch), batch.labels, reduction="none")
            optimizer.zero_grad()
            losses.mean(1).sum().backward()
            optimizer.step()
        accuracies.append(np.stack([accuracy(valid), accuracy(test)], -1))
    return np.stack(accuracies, 1)


def _networks(arm: str, width: int, seeds: Sequence[int], device: str) -> tuple[nn.Module, dict[str, Tensor]]:
    """A network, and weights (seed, ...) for it."""
    networks = []
    for seed in seeds:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            networks.append(_network(arm, width).to(device))
    return networks[0], stack_module_state(networks)[0]


def _row(arm: str, found: Learned) -> Row:
    return {
        "arm": arm,
        "width": found.width,
        "parameters": found.num_parameters,
        "learning_rate": found.learning_rate,
        "weight_decay": found.weight_decay,
        "test_accuracy": float(found.last.mean()),
        "standard_error": _standard_error(found.last),
        "best_validation_accuracy": float(found.at_best[:, VALIDATION].mean()),
        "test_accuracy_there": float(found.at_best[:, TEST].mean()),
    }


def _claims(learned: dict[str, Learned]) -> tuple[Claim, ...]:
    match = learned["match"].last
    paper = "simple concatenation and latent cross both learn inefficiently; matching the two salient features early makes learning easy"
    accuracy = t_interval(match)
    claims = [
        Claim(
            claim=f"match, then concatenate: test accuracy at least {LEAST_ACCURACY:g} after the last epoch (95 % interval)",
            paper=paper,
            ours=f"{accuracy} over {accuracy.num_pairs} seeds",
            low=accuracy.low,
            high=accuracy.high,
            at_least=LEAST_ACCURACY,
        )
    ]
    for arm in ("concatenation", "latent-cross"):
        # The competitor may stop where its validation accuracy is highest; the match is taken after the last epoch.
        theirs = max(learned[arm].last, learned[arm].at_best[:, TEST], key=np.mean)
        gap = t_interval(match - theirs)
        claims.append(
            Claim(
                claim=f"{ARMS[arm]} stays {LEAST_GAP:g} or more below it, in the last epoch and where validation is best (95 % interval)",
                paper=paper,
                ours=f"{theirs.mean():.4f}, the match is {gap} above over {gap.num_pairs} seeds",
                low=gap.low,
                high=gap.high,
                at_least=LEAST_GAP,
            )
        )
    return tuple(claims)


def _standard_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _with_error(values: NDArray[np.float64]) -> str:
    return f"{values.mean():.3f} ± {_standard_error(values):.3f}"


def _figure(learned: dict[str, Learned]) -> Any:
    """Test accuracy by epoch: the mean over seeds, and the range of all of them as a band."""
    from rankpolicy.reports import figures

    with figures.style():
        figure = figures.new_figure(8.0, 4.6)
        axes = figure.add_subplot()
        for colour, (arm, found) in zip(figures.colours(), learned.items(), strict=False):
            test = found.accuracy[:, :, TEST]
            epochs = np.arange(1, test.shape[1] + 1)
            axes.fill_between(epochs, test.min(0), test.max(0), color=colour, alpha=0.18, linewidth=0)
            axes.plot(epochs, test.mean(0), color=colour, linewidth=1.8, label=ARMS[arm])
        axes.axhline(0.5, color=figures.INK, linewidth=1, linestyle=":", alpha=0.6)
        axes.set_xlabel("epoch")
        axes.set_ylabel("test accuracy: mean and range over seeds")
        axes.set_ylim(0.4, 1.0)
        figure.legend(loc="outside upper left", ncols=3, fontsize=9)
        return figure
