"""A candidate policy, learned by the exact gradient of a doubly robust estimate from lists that were shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.gradients.exact import exposure_gradient
from rankpolicy.online.logged_lists import LoggedList, PaddedLists
from rankpolicy.online.online_ranker import Floats
from rankpolicy.policies.race import COARSE, exact_exposure

_BATCH = 32  # logged lists per step
_LEAST_EXPOSURE = 1e-4  # an item shown less often hardly ever counts, and then with a weight that says nothing


def item_values(lists: PaddedLists, attraction: Floats, *, examination: Floats, position_weights: Floats) -> Floats:
    """Doubly robust estimates g (list, item) of the attraction R of each item (Oosterhuis 2023).

    g_i = R̂_i + θ_{rank(i)} (click_i - e_{rank(i)} R̂_i) / exposure_i, with exposure_i = E[θ_{rank(i)} e_{rank(i)}] under the policy that
    drew the list: its mean is R_i for users who click with probability e_rank R_i, however bad R̂ is.
    """
    length = lists.rankings.shape[1]
    shown = np.take_along_axis(attraction, lists.rankings, 1)
    residuals = position_weights[:length] * (lists.clicks - examination[:length] * shown) * lists.is_item
    corrections = np.zeros_like(attraction)
    np.put_along_axis(corrections, lists.rankings, residuals, 1)
    return np.asarray(attraction + corrections / lists.exposure.clip(_LEAST_EXPOSURE))


def proximal_gradient(
    weights: Floats, lists: PaddedLists, values: Floats, *, rank_weights: Floats, clip: float
) -> Floats:
    """Gradient in the weights (feature,) of the mean of Σ_i g_i clip(exposure_i(weights)), by the race, without sampling.

    Exposure counts only up to (1 + clip) times that of the policy that drew the list where g_i > 0, and only down to 1 / (1 + clip) of
    it where g_i < 0 (proximal ranking policy optimisation, Gupta et al. 2024), so no list argues for a policy far from its own.
    """
    scores = lists.features @ weights
    exposure = exact_exposure(scores, lists.mask, rank_weights, quadrature=COARSE)
    ratio = exposure / lists.exposure.clip(_LEAST_EXPOSURE)
    is_near = np.where(values > 0, ratio < 1 + clip, ratio > 1 / (1 + clip))
    coefficients = np.where(is_near & lists.mask, values, 0.0)
    _, slopes = exposure_gradient(scores, lists.mask, coefficients, rank_weights=rank_weights, quadrature=COARSE)
    return np.asarray(slopes.ravel() @ lists.features.reshape(slopes.size, -1) / len(scores))


class Adam:
    """Adam (Kingma & Ba 2015) for one vector that is maximised."""

    def __init__(self, start: Floats, *, rate: float) -> None:
        self.rate = rate
        self.state = np.stack([start, np.zeros_like(start), np.zeros_like(start)])  # value, mean, mean square
        self.num_steps = 0

    @property
    def value(self) -> Floats:
        """The vector now."""
        return self.state[0]

    def step(self, gradient: Floats) -> None:
        """One step uphill."""
        self.num_steps += 1
        value, mean, square = self.state
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        unbiased = mean / (1 - 0.9**self.num_steps), square / (1 - 0.999**self.num_steps)
        self.state = np.stack([value + self.rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8), mean, square])


class Candidate:
    """Weights that learn from the newest lists, with a position-based click model whose attraction is linear in features.

    The model's examination is measured by clicks against predicted attraction, position by position, unless it is given.
    """

    def __init__(
        self,
        weights: Floats,
        *,
        position_weights: Floats,
        examination: Floats | None,
        rate: float,
        clip: float,
        memory: int,
        correction: str,
    ) -> None:
        self.position_weights, self.given_examination = position_weights, examination
        self.rate, self.clip, self.correction = rate, clip, correction
        self.lists: deque[LoggedList] = deque(maxlen=memory)
        self.counts = np.ones((2, len(position_weights)))  # clicks and predicted attraction by position
        self.model = Adam(np.append(np.zeros(len(weights)), -1.0), rate=rate)
        self.restart(weights)

    def restart(self, weights: Floats) -> None:
        """Learn anew from these weights, from lists that are yet to come."""
        self.policy = Adam(weights, rate=self.rate)
        self.lists.clear()

    @property
    def examination(self) -> Floats:
        """e (position,), 1 at most."""
        if self.given_examination is not None:
            return self.given_examination
        shares = self.counts[0] / self.counts[1]
        return np.asarray((shares / shares.max()).clip(0.02))

    @property
    def rank_weights(self) -> Floats:
        """θ e (position,): what an item of attraction 1 earns at each position."""
        return self.position_weights * self.examination

    def learn(self, num_steps: int, generator: np.random.Generator) -> None:
        """Steps on lists drawn from those in memory."""
        for _ in range(num_steps):
            chosen = generator.integers(len(self.lists), size=min(_BATCH, len(self.lists)))
            lists = PaddedLists.of([self.lists[index] for index in chosen], len(self.position_weights))
            self._fit_model(lists)
            attraction = self._attraction(lists) * (self.correction == "doubly-robust")
            values = item_values(
                lists, attraction, examination=self.examination, position_weights=self.position_weights
            )
            self.policy.step(
                proximal_gradient(self.policy.value, lists, values, rank_weights=self.rank_weights, clip=self.clip)
            )

    def _attraction(self, lists: PaddedLists) -> Floats:
        logits = lists.features @ self.model.value[:-1] + self.model.value[-1]
        return np.asarray(0.5 * (1 + np.tanh(logits / 2))) * lists.mask

    def _fit_model(self, lists: PaddedLists) -> None:
        """A step of the likelihood of clicks ~ Bernoulli(e R̂), R̂ = σ(x·β + β0), and of the moments of e."""
        length = lists.rankings.shape[1]
        rows = np.take_along_axis(lists.features, lists.rankings[..., None], 1)
        shown = np.take_along_axis(self._attraction(lists), lists.rankings, 1)
        predicted = (self.examination[:length] * shown).clip(1e-6, 1 - 1e-6)
        slopes = (lists.clicks - predicted) * (1 - shown) / (1 - predicted) * lists.is_item
        gradient = np.append(np.einsum("qp,qpf->f", slopes, rows), slopes.sum()) / max(lists.is_item.sum(), 1)
        self.model.step(gradient)
        self.counts *= 0.999
        self.counts[0, :length] += (lists.clicks * lists.is_item).sum(0)
        self.counts[1, :length] += (shown * lists.is_item).sum(0)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that was learned, and the lists in memory."""
        sizes = [(len(logged.features), len(logged.ranking)) for logged in self.lists]
        named = {
            field: np.concatenate([np.asarray(getattr(logged, field)) for logged in self.lists] or [np.zeros(0)])
            for field in LoggedList._fields
        }
        steps = np.array([self.policy.num_steps, self.model.num_steps])
        return {
            "candidate": self.policy.state,
            "click_model": self.model.state,
            "candidate_steps": steps,
            "examination_counts": self.counts,
            "list_sizes": np.array(sizes, np.int64).reshape(-1, 2),
            **{f"list_{name}": array for name, array in named.items()},
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what ``arrays`` gave."""
        self.policy.state, self.model.state = arrays["candidate"], arrays["click_model"]
        self.policy.num_steps, self.model.num_steps = arrays["candidate_steps"].tolist()
        self.counts = arrays["examination_counts"].copy()
        self.lists.clear()
        ends = np.cumsum(arrays["list_sizes"], 0)
        for (items, positions), (end, last) in zip(arrays["list_sizes"], ends, strict=True):
            of_items, of_positions = slice(end - items, end), slice(last - positions, last)
            self.lists.append(
                LoggedList(
                    arrays["list_features"][of_items],
                    arrays["list_ranking"][of_positions].astype(np.int64),
                    arrays["list_clicks"][of_positions],
                    arrays["list_exposure"][of_items],
                    arrays["list_log_prefixes"][of_positions],
                )
            )
