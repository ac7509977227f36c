"""What every fitted click model can do."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.log_pairs import LogView, PairTable
from rankpolicy.clicks.log.row_counts import ratio
from rankpolicy.clicks.models.definition import PAIR, POSITION, ModelDefinition, User
from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.declarations.arguments import checked_kinds, whole_number
from rankpolicy.display import ShortRepr, short_repr
from rankpolicy.files import atomic_write
from rankpolicy.types import RankPolicyError, unknown_name

FILE_FORMAT, FILE_VERSION = "rankpolicy click model", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Perplexity:
    """Perplexity of click marks: 1 is a perfect forecast, 2 that of a fair coin.

    Parameters
    ----------
    overall
        Mean over ranks.
    by_rank
        One number per rank; NaN where nothing was shown.
    """

    overall: float
    by_rank: NDArray[np.float64]  # (position,)

    __repr__ = short_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickModel(ShortRepr, ModelDefinition):
    """A fitted click model. Every parameter is a probability; pairs and positions that were never seen have its default.

    Parameters
    ----------
    pairs
        The (query, item) pairs that the model was fitted on.
    parameters
        The fitted probabilities by name; ``axes`` gives their shapes.
    defaults
        For each parameter, its value where nothing was seen: the prior mean.
    priors
        The Beta prior (a, b) of each parameter.
    objectives
        Log-likelihood plus log prior before each step of EM; empty for a model in closed form.
    """

    pairs: PairTable
    parameters: Mapping[str, NDArray[np.float64]]
    defaults: Mapping[str, float]
    priors: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    objectives: tuple[float, ...] = ()

    def relevance(self) -> NDArray[np.float64]:
        """How relevant each pair is (pair,), in the order of ``pairs``: its attraction, unless the model says otherwise."""
        return self.attraction_of(self.parameters, np.arange(len(self.pairs)))

    @checked_kinds
    def conditional_click_probabilities(self, log: ClickLog) -> NDArray[np.float64]:
        """P(click | clicks above) (session, position); NaN where nothing was shown.

        Parameters
        ----------
        log
            Lists and their clicks.
        """
        view = self._view(log)
        return np.where(view.is_shown, self._conditional(view), np.nan)

    @checked_kinds
    def click_probabilities(self, log: ClickLog) -> NDArray[np.float64]:
        """P(click) (session, position) of the lists of a log, whatever was clicked; NaN where nothing was shown.

        Parameters
        ----------
        log
            Lists; their clicks do not matter.
        """
        view = self._view(log)
        return np.where(view.is_shown, self._unconditional(view), np.nan)

    @checked_kinds
    def log_likelihood(self, log: ClickLog) -> float:
        """Natural log of the probability of all clicks of a log.

        It is -inf where the model rules a session out, such as one with two clicks in the cascade model.

        Parameters
        ----------
        log
            Lists and their clicks.
        """
        return float(self.session_log_likelihoods(log) @ log.counts)

    @checked_kinds
    def session_log_likelihoods(self, log: ClickLog) -> NDArray[np.float64]:
        """Natural log of the probability of the clicks of each session (session,), not multiplied by its count.

        Parameters
        ----------
        log
            Lists and their clicks.
        """
        view = self._view(log)
        conditional = self._conditional(view)
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(view.clicks, conditional, 1 - conditional))
        total: NDArray[np.float64] = np.where(view.is_shown, logs, 0.0).sum(1)
        return total

    @checked_kinds
    def perplexity(self, log: ClickLog) -> Perplexity:
        """How well the model forecasts each click mark when the clicks above are not known (Dupret & Piwowarski 2008).

        Parameters
        ----------
        log
            Lists and their clicks.
        """
        return perplexity_of(self.click_probabilities(log), log)

    @checked_kinds
    def conditional_perplexity(self, log: ClickLog) -> Perplexity:
        """How well the model forecasts each click mark given the clicks above; infinite where the model rules a mark out.

        Parameters
        ----------
        log
            Lists and their clicks.
        """
        return perplexity_of(self.conditional_click_probabilities(log), log)

    @checked_kinds
    def sample(self, query: str, items: Sequence[object], num_samples: int, *, random_state: int) -> NDArray[np.int8]:
        """Clicks (sample, position) of users who are shown one list.

        Parameters
        ----------
        query
            Name of the query.
        items
            Names of the items shown, from the top.
        num_samples
            Number of users.
        random_state
            Seed; the same seed gives the same clicks.
        """
        num_samples = whole_number("num_samples", num_samples, at_least=1)
        codes = self.pairs.codes(query, [str(item) for item in items])
        pairs = np.tile(codes, (num_samples, 1))
        return self._drawn(pairs, np.ones(pairs.shape, bool), random_state)

    @checked_kinds
    def sample_clicks(self, log: ClickLog, *, random_state: int) -> NDArray[np.int8]:
        """Clicks (session, position) on the lists of a log.

        Parameters
        ----------
        log
            Lists; their own clicks and counts do not matter.
        random_state
            Seed; the same seed gives the same clicks.
        """
        view = self._view(log)
        return self._drawn(view.pairs, view.is_shown, random_state)

    @checked_kinds
    def examination(self, log: ClickLog) -> NDArray[np.float64]:
        """P(examined) at each rank (position,), the mean over the lists of a log: the position effect according to this model.

        P(examined) = P(click) / attraction; pairs whose attraction is 0 are left out.

        Parameters
        ----------
        log
            Lists; their clicks do not matter.
        """
        view = self._view(log)
        attraction = self.attraction_of(self._padded(view.num_positions), view.pairs)
        is_used = view.is_shown & (attraction > 0)
        examined = np.where(is_used, ratio(self._unconditional(view), attraction), 0.0)
        return ratio(view.counts @ examined, view.counts @ is_used)

    @checked_kinds
    def position_values(self, num_positions: int) -> NDArray[np.float64]:
        """What a click at each position is worth times P(examined | no click above) (position,): ``positions=`` of an index bandit.

        DCM: v, P(satisfied after a click). The last position of the longest lists has the prior mean, because no click can follow there.
        PBM and UBM: examination. All positions are alike for other models, whose best item goes to the top.

        Parameters
        ----------
        num_positions
            Length of the lists that a bandit shows.
        """
        num_positions = whole_number("num_positions", num_positions, at_least=1)
        padded = self._padded(num_positions)
        worth = self.click_reward(padded, np.array([len(self.pairs)]), np.arange(num_positions))
        return np.broadcast_to(self.examination_of(padded, num_positions)[:, 0] * worth, num_positions).copy()

    @checked_kinds
    def pair_values(self, name: str, query: str, items: Sequence[object]) -> NDArray[np.float64]:
        """A parameter of pairs at the items of one query (item,), its default where a pair was never seen.

        Parameters
        ----------
        name
            Name of the parameter, such as "attraction".
        query
            Name of the query.
        items
            Names of the items.
        """
        codes = self.pairs.codes(query, [str(item) for item in items])
        if name not in self.defaults:
            raise RankPolicyError(unknown_name("parameter of pairs", name, self.defaults))
        return np.append(self.parameters[name], self.defaults[name])[codes]

    @checked_kinds
    def user_of(self, query: str, items: Sequence[object]) -> User:
        """The user who clicks on these items of a query as the model describes, for simulation.

        Parameters
        ----------
        query
            Name of the query.
        items
            Names of the items; a list may show any of them in any order.
        """
        count = len(items)
        if count == 0:
            raise RankPolicyError("items must hold at least one item; got none.")
        padded = self._padded(count)
        codes = self.pairs.codes(query, [str(item) for item in items])
        parameters = {
            name: padded[name][codes] if axes == (PAIR,) else padded[name][_corner(shape)]
            for (name, axes), shape in zip(self.axes.items(), self.shapes(count, count).values(), strict=True)
        }
        return User(kind=self.name, num_items=count, parameters=parameters)

    def to_dict(self) -> dict[str, Any]:
        """The model as a plain document, which ``save`` writes as JSON:

        {"format": "rankpolicy click model", "version": 1, "model": "dcm", "parameters": {"stop": [...]}, "defaults": {...},
        "priors": {"attraction": [1, 1], ...}, "objectives": [...],
        "queries": [{"query": "98435_1", "items": ["232429", ...], "attraction": [...]}, ...]}

        Parameters of pairs stand beside the items of their query, all others under "parameters".
        """
        of_pairs = self._parameters_of_pairs()
        cuts = np.flatnonzero(np.diff(self.pairs.queries)) + 1
        queries = []
        for rows in np.split(np.arange(len(self.pairs)), cuts):
            names = [self.pairs.item_names[item] for item in self.pairs.items[rows]]
            entry: dict[str, Any] = {"query": self.pairs.query_names[self.pairs.queries[rows[0]]], "items": names}
            queries.append(entry | {name: self.parameters[name][rows].tolist() for name in of_pairs})
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
    @checked_kinds
    def from_dict(cls, document: Mapping[str, Any]) -> ClickModel:
        """The model that ``to_dict`` described.

        Parameters
        ----------
        document
            What ``to_dict`` of a model of this class returned.
        """
        required = ("queries", "parameters", "defaults", "priors", "objectives")
        if missing := [name for name in required if name not in document]:
            raise RankPolicyError(
                f"a click model must be a mapping as to_dict() returns it; a part is missing or wrong (no {', '.join(missing)})."
            )
        entries = document["queries"]
        item_codes: dict[str, int] = {}
        codes = [[item_codes.setdefault(item, len(item_codes)) for item in entry["items"]] for entry in entries]
        # Items are numbered in the order of the file, which need not ascend within a query: pairs are sorted again.
        items = np.concatenate([np.array(of_query, np.int32) for of_query in codes])
        queries = np.repeat(np.arange(len(entries), dtype=np.int32), [len(of_query) for of_query in codes])
        order = np.lexsort((items, queries))
        parameters = {name: np.array(values, np.float64) for name, values in document["parameters"].items()}
        for name in cls._parameters_of_pairs():
            parameters[name] = np.concatenate([np.array(entry[name], np.float64) for entry in entries])[order]
        return cls(
            pairs=PairTable(
                query_names=tuple(entry["query"] for entry in entries),
                item_names=tuple(item_codes),
                queries=queries[order],
                items=items[order],
            ),
            parameters=parameters,
            defaults=dict(document["defaults"]),
            priors={name: (float(prior[0]), float(prior[1])) for name, prior in document["priors"].items()},
            objectives=tuple(document["objectives"]),
        )

    @checked_kinds
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON; ``rankpolicy.load`` reads it, and so does ``rankpolicy simulate --users``.

        Parameters
        ----------
        path
            The file, which is written whole or not at all; compressed where the name ends in .gz, .bz2 or .zst.
        """
        with atomic_write(path) as file:
            file.write((json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False) + "\n").encode())

    @classmethod
    def _parameters_of_pairs(cls) -> list[str]:
        return [name for name, axes in cls.axes.items() if axes == (PAIR,)]

    def _view(self, log: ClickLog) -> LogView:
        if self.needs_sessions and not log.has_sessions:
            raise RankPolicyError(needs_sessions_text(self.name))
        return self.pairs.view(log)

    def _padded(self, num_positions: int) -> dict[str, NDArray[np.float64]]:
        """The parameters with one more entry for unknown pairs and at least as many positions, filled up with the defaults."""
        lengths = [len(self.parameters[name]) for name, axes in self.axes.items() if axes[0] == POSITION]
        shapes = self.shapes(len(self.pairs) + 1, max([num_positions, *lengths]))
        padded = {}
        for name, values in self.parameters.items():
            padded[name] = np.full(shapes[name], self.defaults[name])
            padded[name][_corner(values.shape)] = values
        return padded

    def _conditional(self, view: LogView) -> NDArray[np.float64]:
        from rankpolicy.kernels.clicks.walk import conditional_probabilities_of_lists

        probabilities = np.empty(view.pairs.shape)
        walks = self.walks(self._padded(view.num_positions), view.pairs)
        conditional_probabilities_of_lists(walks, np.ascontiguousarray(view.clicks), probabilities)
        return probabilities

    def _unconditional(self, view: LogView) -> NDArray[np.float64]:
        from rankpolicy.kernels.clicks.walk import click_probabilities_of_lists

        probabilities = np.empty(view.pairs.shape)
        click_probabilities_of_lists(self.walks(self._padded(view.num_positions), view.pairs), probabilities)
        return probabilities

    def _drawn(self, pairs: NDArray[np.int64], is_shown: NDArray[np.bool_], random_state: int) -> NDArray[np.int8]:
        from rankpolicy.kernels.clicks.walk import draw_clicks_of_lists, random_source

        clicks = np.zeros(pairs.shape, np.int8)
        walks = self.walks(self._padded(pairs.shape[1]), pairs)
        shown = walks._replace(attraction=np.where(is_shown, walks.attraction, 0.0))
        draw_clicks_of_lists(shown, random_source(random_state, 0), clicks)
        return clicks


def perplexity_of(probabilities: NDArray[np.float64], log: ClickLog) -> Perplexity:
    """2^(-mean over the items shown at a rank of log2 P(their click mark)) (Dupret & Piwowarski 2008).

    >>> from rankpolicy.clicks.log.click_log import log_from_lists
    >>> log = log_from_lists(["a", "a"], [["x", "y"], ["x", "y"]], [[1, 0], [0, 0]])
    >>> perplexity_of(np.array([[0.5, 0.5], [0.5, 0.5]]), log).by_rank
    array([2., 2.])
    """
    with np.errstate(divide="ignore"):
        bits = -np.log2(np.where(log.clicks, probabilities, 1 - probabilities))
    is_shown = ~np.isnan(probabilities)
    total = np.where(is_shown, bits, 0.0).T @ log.counts
    shown = is_shown.T @ log.counts
    with np.errstate(invalid="ignore"):
        by_rank = 2.0 ** (total / np.where(shown > 0, shown, np.nan))
    return Perplexity(overall=float(np.nanmean(by_rank)), by_rank=by_rank)


def restore_click_model(document: Mapping[str, Any], path: str | os.PathLike[str]) -> ClickModel:
    """The model that ``save`` or ``rankpolicy clicks fit`` wrote, from its document; ``rankpolicy.load`` calls this."""
    if document.get("version") != FILE_VERSION:
        raise RankPolicyError(
            f"{path} must be a click model of version {FILE_VERSION}; it is of version {document.get('version')}. "
            "Update rankpolicy, or fit the model again."
        )
    try:
        return CLICK_MODELS.named(document["model"]).from_dict(document)
    except RankPolicyError as error:
        raise RankPolicyError(f"{path}: {error}") from None
    except (KeyError, TypeError, IndexError) as error:
        raise RankPolicyError(
            f"{path} must be a complete click model; a part is missing or wrong ({error!r})."
        ) from None


def needs_sessions_text(name: str) -> str:
    """The message for a model that cannot be used with counts."""
    usable_models = ", ".join(other for other, kind in CLICK_MODELS.items() if not kind.needs_sessions)
    return (
        f"{name} needs whole sessions; this log holds counts by (query, item, position), which say nothing about the clicks above. "
        f"Use a log with sessions, or one of the models {usable_models}."
    )


def weighted_log(weights: NDArray[np.float64], probabilities: NDArray[np.float64]) -> float:
    """Sum of weight x log probability, where 0 x log 0 = 0; both have the same shape."""
    if probabilities.size and probabilities.min() > 0:
        return float(np.vdot(weights, np.log(probabilities)))
    counts = weights > 0
    with np.errstate(divide="ignore"):
        return float(weights[counts] @ np.log(probabilities[counts]))


def _corner(shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(map(slice, shape))
