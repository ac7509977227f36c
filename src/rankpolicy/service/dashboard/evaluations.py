"""Off-policy estimates of candidates, as the audit log has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rankpolicy.reports.charts import Row
from rankpolicy.reports.numbers import share, short
from rankpolicy.service.domain.messages import AuditLine

MOST = 12  # the newest ones
LITTLE = "the log says little about it"

Interval = tuple[float | None, float | None]


class Candidate(msgspec.Struct, frozen=True):
    """What was judged: a version of a policy, or a model."""

    policy: str | None = None
    version: int | str | None = None
    model_sha256: str | None = None
    order_by: str | None = None


class Estimate(msgspec.Struct, frozen=True):
    """Events per list that a candidate would have had."""

    value: float
    interval: Interval
    level: float | None = None
    estimator: str | None = None
    effective_sample_size: float | None = None


class Difference(msgspec.Struct, frozen=True):
    """How much better than a policy that is served a candidate would have been."""

    policy: str | None = None
    difference: float | None = None
    interval: Interval = (None, None)


class Evaluation(msgspec.Struct, frozen=True):
    """The estimate of a candidate and what the shown lists had."""

    candidate: Candidate
    estimate: Estimate
    logged_value: float
    lists: int = 0
    is_covered: bool = True
    against: Difference | None = None

    @property
    def name(self) -> str:
        """The name of the candidate."""
        candidate = self.candidate
        if candidate.policy:
            return f"{candidate.policy} v{candidate.version}"
        ordered = f", {candidate.order_by}" if candidate.order_by else ""
        return f"model {str(candidate.model_sha256)[:12]}{ordered}"

    @property
    def doubt(self) -> str:
        return "" if self.is_covered else LITTLE

    @property
    def row(self) -> Row:
        """As a row of a chart."""
        name = self.name if self.is_covered else f"{self.name} ({LITTLE})"
        return Row(name, self.estimate.value, self.logged_value, *self.estimate.interval)

    @property
    def summary(self) -> str:
        """The estimate in a line."""
        low, high = self.estimate.interval
        interval = "" if low is None else f", {share(self.estimate.level)} interval {short(low)} to {short(high)}"
        return f"{self.name}: {short(self.estimate.value)} events per list{interval}; shown lists {short(self.logged_value)}"


_EVALUATION = msgspec.json.Decoder(Evaluation)


def evaluations_of(lines: Sequence[AuditLine]) -> list[Evaluation]:
    """The estimates among the lines of the audit log, in their order."""
    evaluations = (_evaluation(line) for line in lines if line.action == "evaluate")
    return [evaluation for evaluation in evaluations if evaluation is not None][:MOST]


def detail_of(line: AuditLine) -> str:
    """The detail of a line of the audit log, an estimate in words."""
    evaluation = _evaluation(line)
    return line.detail if evaluation is None else evaluation.summary


def _evaluation(line: AuditLine) -> Evaluation | None:
    try:
        return _EVALUATION.decode(line.detail)
    except msgspec.DecodeError:  # a detail in words
        return None


def plain_text(value: Any) -> str:
    """A value of the report of a policy: numbers in four digits, intervals as "a to b"."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {plain_text(member)}" for key, member in value.items())
    if isinstance(value, list):
        is_interval = len(value) == 2 and all(isinstance(member, float) for member in value)
        return (" to " if is_interval else ", ").join(map(plain_text, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
