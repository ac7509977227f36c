"""Users who examine every item until they stop: what CM, DCM, DBN, SDBN and CCM have in common, their E step, and CM and DCM.

An examined item is clicked with its attraction a; then the user goes on to the next with probability ``after_click`` or ``after_skip``,
and examines nothing more once she has stopped. Members differ only in these two.

Given the clicks, whether a position was examined is a chain with two states, so one backward and one forward pass are exact:

    later_k  = P(marks from k on | k examined)   = P(mark at k) (on later_{k+1} + (1 - on) none_{k+1})
    x_{k+1}  = P(k + 1 examined | all marks)     = x_k on later_{k+1} / (on later_{k+1} + (1 - on) none_{k+1})

with x_1 = 1, on = after_click or after_skip according to the mark at k, and none_k = 1 if there is no click from k on, else 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankpolicy.clicks.log.list_counts import ListCounts, list_counts
from rankpolicy.clicks.log.log_pairs import LogView
from rankpolicy.clicks.log.row_counts import ratio, weighted_counts
from rankpolicy.clicks.models.click_model import ClickModel, weighted_log
from rankpolicy.clicks.models.definition import PAIR, POSITION, Axis, Codes, Expectation, Floats, Parameters

Counts = dict[str, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What users did after they examined an item that had another one below; ``went_on`` is a probability given all marks."""

    pairs: Codes  # (click,); equal clicks are counted once
    positions: Codes  # (click,)
    counts: Floats  # (click,)
    went_on: Floats  # (click,)
    skips: float  # items examined and not clicked
    skips_gone_on: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeModel(ClickModel):
    """A member defines ``after_click``, ``after_skip`` and how their parameters are counted."""

    @classmethod
    def count_moves(cls, parameters: Parameters, moves: Moves, num_pairs: int) -> tuple[Counts, Counts]:
        """Successes and trials of the parameters behind ``after_click`` and ``after_skip``; counts of "attraction" are added to the clicks.

        Parameters
        ----------
        parameters
            Parameters of the model by name.
        moves
            Expected moves after clicks and skips.
        num_pairs
            Number of (query, item) pairs.
        """
        return {}, {}

    @classmethod
    def expect(cls, parameters: Parameters, view: LogView) -> Expectation:
        attraction = parameters["attraction"][view.pairs]
        after_click = np.broadcast_to(
            cls.after_click(parameters, view.pairs, np.arange(view.num_positions)), view.pairs.shape
        )
        examined, likelihood = examined_given_clicks(attraction, after_click, cls.after_skip(parameters), view)
        weights, clicks, has_next = view.weights, view.clicks, view.has_next
        below = np.pad(examined, ((0, 0), (0, 1)))[:, 1:]
        sessions, positions = np.nonzero(clicks & has_next)
        skipped = weights * (~clicks & has_next)
        moves = Moves(
            pairs=view.pairs[sessions, positions],
            positions=positions,
            counts=view.counts[sessions],
            went_on=below[sessions, positions],
            skips=float((skipped * examined).sum()),
            skips_gone_on=float((skipped * below).sum()),
        )
        with np.errstate(divide="ignore"):
            log_likelihood = float(view.counts @ np.log(likelihood))
        counts = view.sum_by_pair(weights * clicks), view.sum_by_pair(weights * examined)
        return cls._expectation(parameters, moves, *counts, log_likelihood)

    @classmethod
    def summarise(cls, view: LogView) -> ListCounts:
        return list_counts(view)

    @classmethod
    def expect_compiled(cls, parameters: Parameters, summary: ListCounts) -> Expectation:
        """The same from the counts down to the last clicks, which need no parameters, and the chain below them."""
        from rankpolicy.kernels.clicks.expectation import examine_lists

        attraction, after_skip = parameters["attraction"], cls.after_skip(parameters)
        # In full length: the kernel reads one entry per move, also where a member has one value for all of them.
        of_moves = cls.after_click(parameters, summary.move_pairs, summary.move_positions)
        after_click = np.ascontiguousarray(np.broadcast_to(of_moves, summary.move_pairs.shape))
        passed = slice(summary.num_passed)
        examined, went_on, skips, skips_gone_on, below = examine_lists(
            summary.pairs,
            summary.lengths,
            summary.last_clicks,
            summary.last_starts,
            summary.blocks,
            attraction,
            after_click[summary.num_passed :],
            after_skip,
        )
        moves = Moves(
            pairs=summary.move_pairs,
            positions=summary.move_positions,
            counts=summary.move_counts,
            went_on=np.concatenate([np.ones(summary.num_passed), went_on]),
            skips=summary.skips_above + skips,
            skips_gone_on=summary.skips_above + skips_gone_on,
        )
        log_likelihood = (
            weighted_log(summary.clicks, attraction)
            + weighted_log(summary.shown_above - summary.clicks, 1 - attraction)
            + weighted_log(summary.move_counts[passed], after_click[passed])
            + weighted_log(np.array([summary.skips_above]), np.array([after_skip]))
            + below
        )
        return cls._expectation(parameters, moves, summary.clicks, summary.shown_above + examined, log_likelihood)

    @classmethod
    def _expectation(
        cls,
        parameters: Parameters,
        moves: Moves,
        clicks: Floats,
        examined: Floats,
        log_likelihood: float,
    ) -> Expectation:
        successes, trials = cls.count_moves(parameters, moves, len(clicks) - 1)
        successes["attraction"] = clicks + successes.get("attraction", 0.0)
        trials["attraction"] = examined + trials.get("attraction", 0.0)
        return Expectation(successes=successes, trials=trials, log_likelihood=log_likelihood)


def examined_given_clicks(
    attraction: Floats, after_click: Floats, after_skip: float, view: LogView
) -> tuple[Floats, Floats]:
    """P(examined | all marks) (session, position), 0 where nothing was shown, and the probability of the marks (session,)."""
    clicks, width = view.clicks, view.num_positions
    goes_on = np.where(clicks, after_click, after_skip)
    stopped = (1 - goes_on) * ~view.has_later_click
    later = np.ones((len(clicks), width + 1))
    for k in reversed(range(width)):
        mark = np.where(clicks[:, k], attraction[:, k], 1 - attraction[:, k])
        onwards = mark * (goes_on[:, k] * later[:, k + 1] + stopped[:, k])
        later[:, k] = np.where(view.is_shown[:, k], onwards, 1.0)
    examined = np.ones(clicks.shape)
    for k in range(width - 1):
        on = goes_on[:, k] * later[:, k + 1]
        examined[:, k + 1] = examined[:, k] * ratio(on, on + stopped[:, k])
    return np.where(view.is_shown, examined, 0.0), later[:, 0]


def stopped_at_last_click(cls: type[CascadeModel], view: LogView) -> Expectation:
    """The estimate of Guo, Liu & Wang (2009), which assumes that users stop at their last click, or examine the whole list without one.

    It is an approximation, since users may go on and find nothing more to click; EM starts from it.
    """
    weights, clicks, goes_on = view.weights, view.clicks, view.has_later_click
    examined = goes_on | clicks | ~clicks.any(1, keepdims=True)
    sessions, positions = np.nonzero(clicks)
    moves = Moves(
        pairs=view.pairs[sessions, positions],
        positions=positions,
        counts=view.counts[sessions],
        went_on=goes_on[sessions, positions].astype(np.float64),
        skips=0.0,
        skips_gone_on=0.0,
    )
    shapes = cls.shapes(view.num_pairs + 1, view.num_positions)
    halves = {name: np.full(shape, 0.5) for name, shape in shapes.items()}
    counts = view.sum_by_pair(weights * clicks), view.sum_by_pair(weights * examined)
    return cls._expectation(halves, moves, *counts, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade(CascadeModel):
    """The cascade model (Craswell, Zoeter, Taylor & Ramsey 2008).

    The user examines one item after another and stops at the first click: after_click = 0, after_skip = 1.

    Maximum likelihood in closed form: attraction = clicks / how often the item was shown at the first click or above it. A second
    click is impossible in this model; it is not counted, and a log with one has the log-likelihood -inf.
    """

    name: ClassVar[str] = "cm"
    title: ClassVar[str] = "cascade model"
    uses_em: ClassVar[bool] = False
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"attraction": (PAIR,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        clicks_so_far = np.cumsum(view.clicks, 1)
        weights = view.weights * (clicks_so_far - view.clicks == 0)
        return Expectation(
            successes={"attraction": view.sum_by_pair(weights * view.clicks)},
            trials={"attraction": view.sum_by_pair(weights)},
        )

    @classmethod
    def after_click(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        return np.zeros(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DependentClick(CascadeModel):
    """The dependent click model (Guo, Liu & Wang 2009).

    After a click at position k the user stops with probability stop_k: after_click = 1 - stop_k, after_skip = 1.

    EM starts from the paper's estimate, which takes the last click for a stop (``iterations=0`` keeps it), and continues to maximum
    likelihood. What happens after a click on the last position leaves no trace: there stop keeps the prior mean.
    """

    name: ClassVar[str] = "dcm"
    title: ClassVar[str] = "dependent click model"
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"attraction": (PAIR,), "stop": (POSITION,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        return stopped_at_last_click(cls, view)

    @classmethod
    def after_click(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        return 1 - parameters["stop"][positions]

    @classmethod
    def click_reward(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        return parameters["stop"][positions]

    @classmethod
    def count_moves(cls, parameters: Parameters, moves: Moves, num_pairs: int) -> tuple[Counts, Counts]:
        num_positions = len(parameters["stop"])
        stops = weighted_counts(moves.positions, moves.counts * (1 - moves.went_on), num_positions)
        return {"stop": stops}, {"stop": weighted_counts(moves.positions, moves.counts, num_positions)}
