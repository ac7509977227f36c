"""The clicks and propensities that ``train`` was given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankpolicy.clicks import ClickLog, PositionBias
    from rankpolicy.data import RankingDataset

UNCORRECTED = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenClicks:
    log: ClickLog | None
    bias: PositionBias | None
    is_uncorrected: bool  # position bias is to stay
    files: dict[str, Path]  # what was read, by role

    def propensities_for(self, train: RankingDataset) -> PositionBias | NDArray[np.float64] | None:
        import numpy as np

        if not self.is_uncorrected:
            return self.bias
        if self.log is not None:
            return np.ones(self.log.num_positions)
        ranks = None if train.shown is None else train.shown.ranks
        return np.ones(1 if ranks is None else int(ranks.max()))


def clicks_to_train_on(log: Path | None, propensities: str | None) -> GivenClicks:
    """Read before the data, so that a wrong file is told at once."""
    from rankpolicy.clicks import read_click_log

    if log is not None and propensities is None:
        raise RankPolicyError(
            "--clicks needs --propensities FILE: 'rankpolicy clicks bias LOG --out DIR' writes DIR/bias.json. "
            "To learn from clicks as they are, say --propensities none."
        )
    files = {} if log is None else {"clicks": log}
    bias = None
    if propensities is not None and propensities != UNCORRECTED:
        bias = position_bias_named(propensities)
        files["propensities"] = Path(propensities.partition("#")[0])
    return GivenClicks(
        log=None if log is None else read_click_log(log).collapsed(),
        bias=bias,
        is_uncorrected=propensities == UNCORRECTED,
        files=files,
    )


def position_bias_named(text: str) -> PositionBias:
    """The position bias in FILE, or that of METHOD in FILE#METHOD."""
    from rankpolicy.clicks import read_position_bias

    name, _, method = text.partition("#")
    return read_position_bias(name, method=method or None)
