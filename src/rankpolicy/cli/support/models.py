"""Models that a verb reads from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers import Ranker


def load_ranker(path: Path) -> Ranker:
    """The ranker in a file; a file that holds something else, such as a click model, is refused.

    Parameters
    ----------
    path
        The file, as ``rankpolicy train`` writes it.
    """
    from rankpolicy.loading import load

    loaded = load(path)
    from rankpolicy.rankers import Ranker  # not before: a file that is missing is reported without loading torch

    if not isinstance(loaded, Ranker):
        raise RankPolicyError(
            f"{path} must hold a ranker, as 'rankpolicy train' writes it; it holds a {type(loaded).__name__}."
        )
    return loaded
