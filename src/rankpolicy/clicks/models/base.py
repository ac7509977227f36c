"""What every fitted click model can do."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.pairs import LogView, PairTable
from rankpolicy.clicks.models.perplexity import Perplexity, perplexity_of
from rankpolicy.types import RankPolicyError

Parameters = dict[str, NDArray[np.float64]]
PAIR, POSITION, BEFORE = "pair", "position", "position + 1"  # BEFORE: 0 for none, else a position above counted from 1
FILE_FORMAT, FILE_VERSION = "rankpolicy click model", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What one pass over a log finds, for each parameter: how often it was tried and succeeded, in expectation given the clicks."""

    successes: Parameters
    trials: Parameters
    log_likelihood: float = np.nan  # of the clicks, under the parameters that the expectation was taken with


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """How one query's list is clicked: what ``kernels/users.py`` simulates."""

    kind: str  # cascade, dcm, pbm, ubm, ccm or dbn
    attraction: NDArray[np.float64]  # (position,) of the items shown, from the top
    satisfaction: NDArray[np.float64]  # (position,) for dbn, else empty
    parameters: NDArray[
        np.float64
    ]  # dcm (1, position) stop; pbm (1, position); ubm (position, position + 1); ccm (1, 3); dbn (1, 1)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.kind, self.attraction, self.satisfaction, self.parameters))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickModel(ABC):
    """A fitted click model. Every parameter is a probability; pairs and positions that were never seen have its default.

    A member says which parameters it has, how they are counted (``closed_form``, ``expect``), and how a user walks down
    a list: a state that starts at the top, the probability of a click there, and how a click or a skip moves it on.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    axes: ClassVar[Mapping[str, tuple[str | int, ...]]]  # of each parameter: PAIR, POSITION, BEFORE or a size
    needs_sessions: ClassVar[bool] = True
    uses_em: ClassVar[bool] = True

    pairs: PairTable
    parameters: Mapping[str, NDArray[np.float64]]
    defaults: Mapping[str, float]
    priors: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    objectives: tuple[float, ...] = ()  # log-likelihood plus log prior before each step of EM

    # What a member is ------------------------------------------------------------------------------------------------------------

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation | None:
        """Counts that need no parameters: all there is to it, or where EM starts; None starts it from 1/2 everywhere."""
        return None

    @classmethod
    def expect(cls, parameters: Parameters, view: LogView) -> Expectation:
        """The E step, in numpy: the specification of the compiled one."""
        raise NotImplementedError(f"{cls.name} is fitted in closed form.")

    @classmethod
    def summarise(cls, view: LogView) -> Any:
        """What the compiled E step reads, made once a fit."""
        raise NotImplementedError(f"{cls.name} is fitted in closed form.")

    @classmethod
    def expect_compiled(cls, parameters: Parameters, summary: Any) -> Expectation:
        """The E step by the kernels."""
        raise NotImplementedError(f"{cls.name} is fitted in closed form.")

    @classmethod
    @abstractmethod
    def start(cls, view: LogView) -> NDArray[Any]:
        """The state (session,) of users before they look at the first position."""

    @classmethod
    @abstractmethod
    def probability(
        cls, parameters: Parameters, view: LogView, position: int, state: NDArray[Any]
    ) -> NDArray[np.float64]:
        """P(click at this position | clicks above) (session,)."""

    @classmethod
    @abstractmethod
    def move(
        cls, parameters: Parameters, view: LogView, position: int, state: NDArray[Any], clicked: NDArray[np.bool_]
    ) -> NDArray[Any]:
        """The state below this position."""

    @classmethod
    @abstractmethod
    def marginals(cls, parameters: Parameters, view: LogView) -> NDArray[np.float64]:
        """P(click) (session, position), clicks above summed out."""

    @abstractmethod
    def relevance(self) -> NDArray[np.float64]:
        """How relevant each pair is (pair,); the order of ``pairs``."""

    @abstractmethod
    def user_of(self, query: str, items: Sequence[object]) -> User:
        """The user who clicks on this list, for simulation."""

    # What they share -------------------------------------------------------------------------------------------------------------

    @classmethod
    def shapes(cls, num_pairs: int, num_positions: int) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter."""
        sizes = {PAIR: num_pairs, POSITION: num_positions, BEFORE: num_positions + 1}
        return {
            name: tuple(size if isinstance(size, int) else sizes[size] for size in axes)
            for name, axes in cls.axes.items()
        }

    def conditional_click_probabilities(self, log: ClickLog) -> NDArray[np.float64]:
        """P(click | clicks above) (session, position); NaN where nothing was shown."""
        view = self._view(log)
        return np.where(view.is_shown, self._conditional(view), np.nan)

    def click_probabilities(self, log: ClickLog) -> NDArray[np.float64]:
        """P(click) (session, position) of the lists of a log, whatever was clicked; NaN where nothing was shown."""
        view = self._view(log)
        return np.where(view.is_shown, self.marginals(self._padded(view.num_positions), view), np.nan)

    def log_likelihood(self, log: ClickLog) -> float:
        """Natural log of the probability of all clicks of a log; -inf where the model rules a session out (two clicks in a cascade)."""
        return float(self.session_log_likelihoods(log) @ log.counts)

    def session_log_likelihoods(self, log: ClickLog) -> NDArray[np.float64]:
        """The same for each session (session,), counted once."""
        view = self._view(log)
        conditional = self._conditional(view)
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(view.clicks, conditional, 1 - conditional))
        return np.where(view.is_shown, logs, 0.0).sum(1)

    def perplexity(self, log: ClickLog) -> Perplexity:
        """How surprised the model is by each click mark, clicks above not known (Dupret & Piwowarski 2008)."""
        return perplexity_of(self.click_probabilities(log), log)

    def conditional_perplexity(self, log: ClickLog) -> Perplexity:
        """The same, clicks above known; infinite where the model rules a mark out."""
        return perplexity_of(self.conditional_click_probabilities(log), log)

    def sample(self, query: str, items: Sequence[object], num_samples: int, *, random_state: int) -> NDArray[np.int8]:
        """Clicks (sample, position) of users who are shown this list."""
        names = [str(item) for item in items]
        pairs = np.tile(self.pairs.codes(query, names), (num_samples, 1))
        view = LogView(
            queries=np.zeros(num_samples, np.int64),
            pairs=pairs,
            is_shown=np.ones(pairs.shape, bool),
            clicks=np.zeros(pairs.shape, bool),
            counts=np.ones(num_samples),
            num_pairs=len(self.pairs),
        )
        return self._drawn(view, random_state)

    def sample_clicks(self, log: ClickLog, *, random_state: int) -> NDArray[np.int8]:
        """Clicks (session, position) on the lists of a log; its own clicks and counts do not matter."""
        return self._drawn(self._view(log), random_state)

    def examination(self, log: ClickLog) -> NDArray[np.float64]:
        """P(examined) at each rank, the mean over the lists of a log (position,): the position effect as this model sees it.

        P(examined) = P(click) / attraction; pairs with no attraction at all tell nothing and are left out.
        """
        view = self._view(log)
        parameters = self._padded(view.num_positions)
        attraction = self.attraction_of(parameters, view)
        tells = view.is_shown & (attraction > 0)
        examined = np.where(tells, ratio(self.marginals(parameters, view), attraction), 0.0)
        return ratio(view.counts @ examined, view.counts @ tells)

    @classmethod
    def attraction_of(cls, parameters: Parameters, view: LogView) -> NDArray[np.float64]:
        """P(click | examined) (session, position)."""
        return parameters["attraction"][view.pairs]

    def pair_values(self, name: str, query: str, items: Sequence[object]) -> NDArray[np.float64]:
        """A parameter of pairs at the items of one query (item,), its default where a pair was never seen."""
        codes = self.pairs.codes(query, [str(item) for item in items])
        return np.append(self.parameters[name], self.defaults[name])[codes]

    def to_json(self) -> str:
        """The model as JSON text, which ``from_json`` and ``rankpolicy simulate --users`` read:

        {"format": "rankpolicy click model", "version": 1, "model": "dcm", "parameters": {"stop": [...]}, "defaults": {...},
        "priors": {"attraction": [1, 1], ...}, "objectives": [...],
        "queries": [{"query": "98435_1", "items": ["232429", ...], "attraction": [...]}, ...]}

        Parameters of pairs stand beside the items of their query, all others under ``parameters``.
        """
        return json.dumps(self._document(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> ClickModel:
        """A model of this class from its JSON text."""
        return cls._from_document(json.loads(text))

    def _view(self, log: ClickLog) -> LogView:
        if self.needs_sessions and not log.has_sessions:
            raise RankPolicyError(needs_sessions_text(self.name))
        return self.pairs.view(log)

    def _padded(self, num_positions: int) -> Parameters:
        """The parameters with room for unknown pairs, the last entry, and for as many positions, filled with the defaults."""
        known = [len(self.parameters[name]) for name, axes in self.axes.items() if axes[0] == POSITION]
        shapes = self.shapes(len(self.pairs) + 1, max([num_positions, *known]))
        padded = {}
        for name, values in self.parameters.items():
            padded[name] = np.full(shapes[name], self.defaults[name])
            padded[name][tuple(map(slice, values.shape))] = values
        return padded

    def _conditional(self, view: LogView) -> NDArray[np.float64]:
        parameters, state = self._padded(view.num_positions), self.start(view)
        conditional = np.empty(view.pairs.shape)
        for position in range(view.num_positions):
            conditional[:, position] = self.probability(parameters, view, position, state)
            state = self.move(parameters, view, position, state, view.clicks[:, position])
        return conditional

    def _drawn(self, view: LogView, random_state: int) -> NDArray[np.int8]:
        generator = np.random.default_rng(random_state)
        parameters, state = self._padded(view.num_positions), self.start(view)
        clicks = np.zeros(view.pairs.shape, np.int8)
        for position in range(view.num_positions):
            chance = self.probability(parameters, view, position, state)
            clicked = (generator.random(len(chance)) < chance) & view.is_shown[:, position]
            state = self.move(parameters, view, position, state, clicked)
            clicks[:, position] = clicked
        return clicks

    def _document(self) -> dict[str, Any]:
        of_pairs = [name for name, axes in self.axes.items() if axes == (PAIR,)]
        cuts = np.flatnonzero(np.diff(self.pairs.queries)) + 1
        queries = []
        for part in np.split(np.arange(len(self.pairs)), cuts):
            names = [self.pairs.item_names[item] for item in self.pairs.items[part]]
            entry: dict[str, Any] = {"query": self.pairs.query_names[self.pairs.queries[part[0]]], "items": names}
            queries.append(entry | {name: self.parameters[name][part].tolist() for name in of_pairs})
        return {
            "format": FILE_FORMAT,
            "version": FILE_VERSION,
            "model": self.name,
            "parameters": {name: values.tolist() for name, values in self.parameters.items() if name not in of_pairs},
            "defaults": dict(self.defaults),
            "priors": {name: list(prior) for name, prior in self.priors.items()},
            "objectives": list(self.objectives),
            "queries": queries,
        }

    @classmethod
    def _from_document(cls, document: Mapping[str, Any]) -> ClickModel:
        entries = document["queries"]
        item_codes: dict[str, int] = {}
        codes = [[item_codes.setdefault(item, len(item_codes)) for item in entry["items"]] for entry in entries]
        # Codes follow the order of the file, in which items of a query need not rise: pairs are sorted again.
        items = np.concatenate([np.array(part, np.int32) for part in codes])
        queries = np.repeat(np.arange(len(entries), dtype=np.int32), [len(part) for part in codes])
        order = np.lexsort((items, queries))
        parameters = {name: np.array(values, np.float64) for name, values in document["parameters"].items()}
        for name, axes in cls.axes.items():
            if axes == (PAIR,):
                flat = np.concatenate([np.array(entry[name], np.float64) for entry in entries])
                parameters[name] = flat[order]
        return cls(
            pairs=PairTable(
                query_names=tuple(entry["query"] for entry in entries),
                item_names=tuple(item_codes),
                queries=queries[order],
                items=items[order],
            ),
            parameters=parameters,
            defaults=dict(document["defaults"]),
            priors={name: tuple(prior) for name, prior in document["priors"].items()},
            objectives=tuple(document["objectives"]),
        )


def needs_sessions_text(name: str) -> str:
    return (
        f"{name} needs whole sessions; this log holds counts by (query, item, position), which say nothing of the clicks above. "
        "Use gctr, rctr, dctr or pbm, or a log with sessions."
    )


def weighted_log(weights: NDArray[np.float64], probabilities: NDArray[np.float64]) -> float:
    """Sum of weight x log probability, where 0 x log 0 = 0; both have the same shape."""
    if probabilities.size and probabilities.min() > 0:
        return float(np.vdot(weights, np.log(probabilities)))
    counts = weights > 0
    with np.errstate(divide="ignore"):
        return float(weights[counts] @ np.log(probabilities[counts]))


def ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quotient, 0 where the denominator is 0: such an event cannot happen, and nothing follows from it."""
    return np.divide(numerator, denominator, out=np.zeros(np.shape(denominator)), where=denominator != 0)
