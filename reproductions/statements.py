"""What a paper says, what was measured about it, and the verdict that follows from the interval of the measurement."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class Verdict(StrEnum):
    """What a measurement says about a claim."""

    HOLDS = "holds"
    CONTRADICTED = "contradicted"
    NOT_SHOWN = "not shown"


class Origin(StrEnum):
    """Who makes a statement; each has sums of its own."""

    PAPER = "statement of the paper"
    CHECK = "check of ours"
    QUESTION = "question of ours"


def verdict(
    low: float | None,
    high: float | None,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Verdict:
    """Where an interval lies: inside the claimed range it holds, outside it contradicts, across its edge it shows nothing.

    Parameters
    ----------
    low, high
        The interval, both ends included; equal for what was counted, None where only a mean is known.
    above, at_least, at_most
        The claimed range; None where it has no such end.

    >>> [verdict(low, high, above=0).value for low, high in ((0.1, 0.3), (-0.3, -0.1), (-0.1, 0.3))]
    ['holds', 'contradicted', 'not shown']
    """
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return Verdict.NOT_SHOWN
    ends_inside = (
        above is None or low > above,
        at_least is None or low >= at_least,
        at_most is None or high <= at_most,
    )
    if all(ends_inside):
        return Verdict.HOLDS
    is_outside = (
        (above is not None and high <= above)
        or (at_least is not None and high < at_least)
        or (at_most is not None and low > at_most)
    )
    return Verdict.CONTRADICTED if is_outside else Verdict.NOT_SHOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One measurement of what a statement says: a cell of a table, a comparison, a curve.

    Parameters
    ----------
    claim
        What is claimed of it.
    paper
        The words or the number of the paper.
    ours
        What was measured here, in words.
    low, high
        The 95 % interval of what was measured; equal for what was counted, None where the run gives only a mean.
    above, at_least, at_most
        The range that the claim says it lies in.
    published
        The same quantity of the paper's own numbers, where they are known.
    """

    claim: str
    paper: str
    ours: str
    low: float | None
    high: float | None
    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    published: float | None = None

    @property
    def verdict(self) -> Verdict:
        """From the interval; a claim that the paper's own numbers fail is not shown, whatever ours are."""
        return Verdict.NOT_SHOWN if self.fails_as_published else self._of(self.low, self.high)

    @property
    def fails_as_published(self) -> bool:
        """Whether the paper's own numbers contradict the claim."""
        return self._of(self.published, self.published) is Verdict.CONTRADICTED

    @property
    def holds(self) -> bool:
        """Whether the verdict is "holds"."""
        return self.verdict is Verdict.HOLDS

    def _of(self, low: float | None, high: float | None) -> Verdict:
        return verdict(low, high, above=self.above, at_least=self.at_least, at_most=self.at_most)

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set, and the verdict, as plain values."""
        return self.fields() | {"verdict": str(self.verdict), "holds": self.holds}

    def fields(self) -> dict[str, Any]:
        """The fields that are set, as plain values; a bound that could not be computed is not."""
        fields = asdict(self).items()
        return {
            key: value
            for key, value in fields
            if isinstance(value, str) or (value is not None and math.isfinite(value))
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Claim:
        """A claim from its plain values; the verdict is computed again."""
        return cls(
            **{"low": None, "high": None, **{key: fields[key] for key in fields if key not in ("verdict", "holds")}}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence of the paper, or a check or a question of ours, which claims measure.

    Parameters
    ----------
    words
        What is said.
    claims
        A regular expression that finds its claims by their words; a claim belongs to the first statement that finds it.
    origin
        Who says it.
    reason
        Why it does not hold here, in a line, as far as we know.
    """

    words: str
    claims: str
    origin: Origin = Origin.PAPER
    reason: str = ""


class Judged(NamedTuple):
    """A statement with its claims."""

    statement: Statement
    claims: tuple[Claim, ...]

    @property
    def verdict(self) -> Verdict:
        """It holds where every claim does, and is contradicted where one is."""
        verdicts = {claim.verdict for claim in self.claims}
        if Verdict.CONTRADICTED in verdicts:
            return Verdict.CONTRADICTED
        return Verdict.HOLDS if verdicts == {Verdict.HOLDS} else Verdict.NOT_SHOWN

    @property
    def counts(self) -> str:
        """The verdicts of its claims in words.

        >>> claims = [Claim(claim="", paper="", ours="", low=x, high=x, above=0) for x in (1, 2, -1)]
        >>> Judged(Statement(words="x is positive", claims=""), tuple(claims)).counts
        '2 of 3 hold, 1 contradicted'
        """
        of = {each: sum(claim.verdict is each for claim in self.claims) for each in Verdict}
        words = [f"{of[Verdict.HOLDS]} of {len(self.claims)} hold{'s' if len(self.claims) == 1 else ''}"]
        words += [f"{of[each]} {each}" for each in (Verdict.CONTRADICTED, Verdict.NOT_SHOWN) if of[each]]
        fails = sum(claim.fails_as_published for claim in self.claims)
        return ", ".join(words) + (f" ({fails} that the published numbers fail too)" if fails else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain values; of the claims only their number and verdicts."""
        return {
            "statement": self.statement.words,
            "origin": str(self.statement.origin),
            "verdict": str(self.verdict),
            "claims": self.counts,
        }


def judged(statements: Sequence[Statement], claims: Sequence[Claim]) -> list[Judged]:
    """The statements that claims measure, each with its claims; a claim that no statement finds is a question of ours by itself."""
    found: dict[Statement, list[Claim]] = {statement: [] for statement in statements}
    for claim in claims:
        owner = next((each for each in statements if re.search(each.claims, claim.claim)), None)
        owner = owner or Statement(words=claim.claim, claims=re.escape(claim.claim), origin=Origin.QUESTION)
        found.setdefault(owner, []).append(claim)
    return [Judged(statement, tuple(own)) for statement, own in found.items() if own]
