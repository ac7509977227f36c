"""The examination hypothesis: P(click) = P(examined) x P(attracted), the one by the place, the other by the pair; fitted by EM.

A member says which examination parameter stands behind a mark: its **slot**, a position (PBM) or a position and the last click above
it (UBM). Given the marks, with a = attraction and e = examination,

    P(examined | clicked) = 1,    P(examined | not clicked) = e (1 - a) / (1 - e a).

Every item shown is a trial of its examination, and when it is examined a trial of its attraction. Counting attraction only when it
was tried converges faster than counting it at every impression (Dempster, Laird & Rubin 1977: less is missing): the same
likelihood, the same fixed points.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.blocks import cut_at_changes
from rankpolicy.clicks.log.distinct import counted_keys, weighted_counts
from rankpolicy.clicks.log.pairs import LogView
from rankpolicy.clicks.models.base import ClickModel, Expectation, Parameters, ratio, weighted_log


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Marks of the same pair, slot and kind, counted once; sorted by pair. A log has few of them, however many its sessions."""

    pairs: NDArray[np.int64]  # (cell,)
    slots: NDArray[np.int64]  # (cell,)
    clicked: NDArray[np.bool_]  # (cell,)
    counts: NDArray[np.float64]  # (cell,)
    blocks: NDArray[np.int64]  # (block + 1,) cuts between pairs


def expect_examination(parameters: Parameters, view: LogView, slots: NDArray[np.int64]) -> Expectation:
    """The E step over all marks, slots (session, position)."""
    shape = parameters["examination"].shape
    attraction, examination = parameters["attraction"][view.pairs], parameters["examination"].ravel()[slots]
    weights, clicks = view.weights, view.clicks
    click_chance = examination * attraction
    examined = np.where(clicks, 1.0, ratio(examination * (1 - attraction), 1 - click_chance))

    def by_slot(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return weighted_counts(slots, values, parameters["examination"].size).reshape(shape)

    return Expectation(
        successes={"attraction": view.sum_by_pair(weights * clicks), "examination": by_slot(weights * examined)},
        trials={"attraction": view.sum_by_pair(weights * examined), "examination": by_slot(weights)},
        log_likelihood=weighted_log(weights, np.where(clicks, click_chance, 1 - click_chance)),
    )


def cells_of(view: LogView, slots: NDArray[np.int64], num_slots: int) -> Cells:
    """The marks of a log, counted."""
    shown = view.is_shown
    keys = ((view.pairs * num_slots + slots) * 2 + view.clicks)[shown]
    counts = np.broadcast_to(view.counts[:, None], shown.shape)[shown]
    found, totals = counted_keys(keys, counts, (view.num_pairs + 1) * num_slots * 2)
    place, clicked = np.divmod(found, 2)
    pairs, slot = np.divmod(place, num_slots)
    return Cells(pairs=pairs, slots=slot, clicked=clicked.astype(bool), counts=totals, blocks=cut_at_changes(pairs))


def expect_cells(parameters: Parameters, cells: Cells) -> Expectation:
    """The E step over counted marks, compiled."""
    from rankpolicy.kernels.clicks.examination import examination_counts

    shape = parameters["examination"].shape
    clicks, examined, examined_by_slot, shown_by_slot, log_likelihood = examination_counts(
        cells.pairs,
        cells.slots,
        cells.clicked,
        cells.counts,
        cells.blocks,
        parameters["attraction"],
        parameters["examination"].ravel(),
    )
    return Expectation(
        successes={"attraction": clicks, "examination": examined_by_slot.reshape(shape)},
        trials={"attraction": examined, "examination": shown_by_slot.reshape(shape)},
        log_likelihood=log_likelihood,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminationModel(ClickModel):
    """A member says how its state chooses the slot; ``examination`` is read flat."""

    @classmethod
    @abstractmethod
    def slot(cls, position: int, state: NDArray[Any], num_positions: int) -> NDArray[np.int64] | int:
        """The examination parameter that decides at this position (session,)."""

    @classmethod
    def probability(
        cls, parameters: Parameters, view: LogView, position: int, state: NDArray[Any]
    ) -> NDArray[np.float64]:
        examination = parameters["examination"]
        slot = cls.slot(position, state, len(examination))
        return parameters["attraction"][view.pairs[:, position]] * examination.ravel()[slot]

    @classmethod
    def expect(cls, parameters: Parameters, view: LogView) -> Expectation:
        return expect_examination(parameters, view, cls._slots(view))

    @classmethod
    def summarise(cls, view: LogView) -> Cells:
        num_slots = int(np.prod(cls.shapes(view.num_pairs, view.num_positions)["examination"]))
        return cells_of(view, cls._slots(view), num_slots)

    @classmethod
    def expect_compiled(cls, parameters: Parameters, summary: Cells) -> Expectation:
        return expect_cells(parameters, summary)

    def relevance(self) -> NDArray[np.float64]:
        return self.parameters["attraction"]

    @classmethod
    def _slots(cls, view: LogView) -> NDArray[np.int64]:
        """The slot behind each mark (session, position)."""
        slots, state = np.empty(view.pairs.shape, np.int64), cls.start(view)
        for position in range(view.num_positions):
            slots[:, position] = cls.slot(position, state, view.num_positions)
            state = cls.move({}, view, position, state, view.clicks[:, position])
        return slots
