"""The clicks and propensities given to ``train`` and ``evaluate``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankpolicy.clicks import ClickLog, PositionBias
    from rankpolicy.data import RankingDataset

UNCORRECTED = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenClicks:
    """What ``--clicks``, ``--propensities`` and ``--weighted`` name, read from files."""

    log: ClickLog | None
    bias: PositionBias | None
    is_uncorrected: bool  # --propensities none: position bias is left in
    weighted: str | None
    files: dict[str, Path]  # the files that were read, by role

    def training_data(self, train: RankingDataset, ranker: Any) -> RankingDataset:
        """The dataset with labels and weights from the clicks; unchanged where no clicks were given."""
        if self.log is not None:
            import numpy as np

            from rankpolicy.clicks import dataset_from_clicks

            bias = np.ones(self.log.num_positions) if self.bias is None else self.bias
            by = self.weighted or _weighting_for(ranker)
            return dataset_from_clicks(train, self.log, bias, by=by)  # type: ignore[arg-type]
        if self.bias is not None or self.is_uncorrected:
            from rankpolicy.clicks import weighted_by_propensity

            return weighted_by_propensity(train, self._of_table(train), by=self.weighted or "query")  # type: ignore[arg-type]
        if self.weighted is not None:
            raise RankPolicyError("--weighted says how clicks are weighted: it needs --propensities FILE.")
        return train

    def validation_data(self, valid: RankingDataset) -> RankingDataset:
        """A click table weighted as the training clicks; graded data unchanged."""
        is_given = self.bias is not None or self.is_uncorrected
        if not is_given or valid.shown_by_query is None or valid.shown_by_query.ranks is None:
            return valid
        from rankpolicy.clicks import weighted_by_propensity

        return weighted_by_propensity(valid, self._of_table(valid))

    def _of_table(self, table: RankingDataset) -> PositionBias | NDArray[np.float64]:
        if self.bias is not None:
            return self.bias
        import numpy as np

        ranks = None if table.shown_by_query is None else table.shown_by_query.ranks
        return np.ones(1 if ranks is None else int(ranks.max()))


def clicks_to_train_on(
    log: Path | None, propensities: Path | None, bias_method: str | None, weighted: str | None
) -> GivenClicks:
    """The files that the options name; read before the data, so that a wrong file is reported at once."""
    if log is not None and propensities is None:
        raise RankPolicyError(
            "--clicks needs --propensities FILE: 'rankpolicy clicks bias LOG --out DIR' writes DIR/bias.json. "
            "To learn from clicks as they are, say --propensities none."
        )
    is_uncorrected = propensities is not None and str(propensities) == UNCORRECTED
    bias = position_bias_from(None if is_uncorrected else propensities, bias_method)
    files = {} if log is None else {"clicks": log}
    if propensities is not None and bias is not None:
        files["propensities"] = propensities
    return GivenClicks(
        log=None if log is None else _log_in(log),
        bias=bias,
        is_uncorrected=is_uncorrected,
        weighted=weighted,
        files=files,
    )


def position_bias_from(propensities: Path | None, bias_method: str | None) -> PositionBias | None:
    """The position bias in the file of ``--propensities``, by the method of ``--bias-method`` where it holds several."""
    if propensities is not None:
        from rankpolicy.clicks import read_position_bias

        return read_position_bias(propensities, method=bias_method)
    if bias_method is not None:
        raise RankPolicyError("--bias-method names a method in a bias.json: it needs --propensities FILE.")
    return None


def _log_in(file: Path) -> ClickLog:
    from rankpolicy.clicks import read_click_log

    return read_click_log(file).collapsed()


def _weighting_for(ranker: Any) -> str:
    """How the clicks of a log are weighted by default: by "query" where the reward asks which items are relevant."""
    from rankpolicy.metrics import reward_to_maximise
    from rankpolicy.metrics.expression import binary_metrics

    reward = ranker.get_params().get("reward")
    return "query" if reward is not None and binary_metrics(reward_to_maximise(reward)) else "item"
