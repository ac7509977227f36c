"""The clicks and propensities that ``train`` learns from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.cli.support.options import MeasuredBias
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankpolicy.clicks import ClickLog, PositionBias
    from rankpolicy.data import RankingDataset

UNCORRECTED = Path("none")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickOptions:
    """Where clicks to learn from are, and how they are weighted.

    Parameters
    ----------
    clicks : LOG
        A log of clicks on the items of --data; labels are made from it.
    propensities : FILE
        bias.json of 'rankpolicy clicks bias'; 'none' leaves position bias in the clicks.
    bias_method : METHOD
        The method to take where --propensities holds several.
    weighted : item|query
        Weight clicks item by item (default for a log), or whole lists (default for a click table).
    """

    clicks: Path | None = None
    propensities: Path | None = None
    bias_method: str | None = None
    weighted: str | None = None

    def read(self) -> TrainingClicks:
        """What the options name; read before the data, so that a wrong file is reported at once."""
        if self.clicks is not None and self.propensities is None:
            raise RankPolicyError(
                "--clicks needs --propensities FILE: 'rankpolicy clicks bias LOG --out DIR' writes DIR/bias.json. "
                "To learn from clicks as they are, say --propensities none."
            )
        is_uncorrected = self.propensities == UNCORRECTED
        file = None if is_uncorrected else self.propensities
        bias = MeasuredBias(propensities=file, bias_method=self.bias_method).read()
        log = None
        if self.clicks is not None:
            from rankpolicy.clicks import read_click_log

            log = read_click_log(self.clicks).collapsed()
        files = {"clicks": self.clicks, "propensities": file}
        return TrainingClicks(
            log=log,
            bias=bias,
            is_uncorrected=is_uncorrected,
            weighted=self.weighted,
            files={role: path for role, path in files.items() if path is not None},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingClicks:
    """The clicks and propensities themselves."""

    log: ClickLog | None
    bias: PositionBias | None
    is_uncorrected: bool  # --propensities none: position bias is left in
    weighted: str | None
    files: dict[str, Path]  # the files that were read, by role

    def training_data(self, train: RankingDataset, ranker: Any) -> RankingDataset:
        """The dataset with labels and weights from the clicks; unchanged where there are no clicks."""
        if self.log is not None:
            import numpy as np

            from rankpolicy.clicks import dataset_from_clicks

            bias = np.ones(self.log.num_positions) if self.bias is None else self.bias
            by = self.weighted or _weighting_for(ranker)
            return dataset_from_clicks(train, self.log, bias, by=by)  # type: ignore[arg-type]
        if self.bias is not None or self.is_uncorrected:
            from rankpolicy.clicks import weighted_by_propensity

            return weighted_by_propensity(train, self._bias_in(train), by=self.weighted or "query")  # type: ignore[arg-type]
        if self.weighted is not None:
            raise RankPolicyError("--weighted says how clicks are weighted: it needs --propensities FILE.")
        return train

    def validation_data(self, valid: RankingDataset) -> RankingDataset:
        """A click table weighted as the training clicks; graded data unchanged."""
        has_bias = self.bias is not None or self.is_uncorrected
        if not has_bias or valid.shown_by_query is None or valid.shown_by_query.ranks is None:
            return valid
        from rankpolicy.clicks import weighted_by_propensity

        return weighted_by_propensity(valid, self._bias_in(valid))

    def _bias_in(self, table: RankingDataset) -> PositionBias | NDArray[np.float64]:
        if self.bias is not None:
            return self.bias
        import numpy as np

        ranks = None if table.shown_by_query is None else table.shown_by_query.ranks
        return np.ones(1 if ranks is None else int(ranks.max()))


def _weighting_for(ranker: Any) -> str:
    """How the clicks of a log are weighted by default: by "query" where the reward asks which items are relevant."""
    from rankpolicy.metrics import reward_to_maximise
    from rankpolicy.metrics.expression import binary_metrics

    reward = ranker.get_params().get("reward")
    return "query" if reward is not None and binary_metrics(reward_to_maximise(reward)) else "item"
