"""Users of the literature on learning to rank online, whole batches at a time: what they click depends on the grade of an item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Users:
    """Read from the top, examine position p with e_p, click with a probability of the grade, and stop after a click with another.

    Parameters
    ----------
    click, stop
        Probabilities (grade,).
    examination
        Probability to look at each position (position,), whatever happened above.
    """

    click: Floats
    stop: Floats
    examination: Floats

    def reversed(self) -> Users:
        """Users who prefer what these dislike."""
        return Users(click=self.click[::-1].copy(), stop=self.stop[::-1].copy(), examination=self.examination)

    def clicks(self, grades: NDArray[np.int64], generator: np.random.Generator) -> Floats:
        """Clicks (query, position) on lists of items with these grades; -1 where there is no item."""
        marks = np.zeros(grades.shape)
        is_reading = np.ones(len(grades), bool)
        for position in range(grades.shape[1]):
            grade = grades[:, position]
            chance = self.click[grade] * self.examination[position] * ((grade >= 0) & is_reading)
            marks[:, position] = generator.random(len(grades)) < chance
            is_reading &= ~((marks[:, position] > 0) & (generator.random(len(grades)) < self.stop[grade]))
        return marks


def users_of(kind: str, num_grades: int, cutoff: int) -> Users:
    """Users by the names and numbers of Hofmann et al. (2013), as Oosterhuis & de Rijke (2018) use them, for 3 or 5 grades.

    ``perfect`` and ``position-based`` follow the click model that SafePolicyGradient learns with; the others stop after clicks.
    ``position-based`` users click as navigational ones do and look at position p with probability 1 / p.
    """
    table: dict[int, dict[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
        3: {
            "perfect": ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
            "navigational": ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
            "informational": ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
            "position-based": ((0.05, 0.5, 0.95), (0.0, 0.0, 0.0)),
        },
        5: {
            "perfect": ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0,) * 5),
            "navigational": ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
            "informational": ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
            "position-based": ((0.05, 0.3, 0.5, 0.7, 0.95), (0.0,) * 5),
        },
    }
    click, stop = table[num_grades][kind]
    positions = np.arange(1, cutoff + 1)
    examination = 1 / positions if kind == "position-based" else np.ones(cutoff)
    return Users(click=np.array(click), stop=np.array(stop), examination=examination)
