"""A table or figure of a paper as something to run: what it reads, what it measures, which statements of the paper it checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rankpolicy.types import RankPolicyError

Row = dict[str, Any]  # plain values by column


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement of the paper that can fail here."""

    claim: str
    paper: str  # its words or figure there
    ours: str  # what was measured
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What a run measured, beside what the paper says."""

    rows: tuple[Row, ...]
    claims: tuple[Claim, ...]
    figures: dict[str, Any] = field(default_factory=dict)  # matplotlib figures by file name

    def to_json(self) -> dict[str, Any]:
        return {"rows": list(self.rows), "claims": [asdict(claim) for claim in self.claims]}

    @property
    def failed(self) -> tuple[Claim, ...]:
        return tuple(claim for claim in self.claims if not claim.holds)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setup:
    """How a target is to run. A smoke run goes through the same code with little data: its numbers prove nothing."""

    data: Path | None = None  # the folder that RANKPOLICY_DATA names
    seed: int = 0
    is_smoke: bool = False
    device: str = "cpu"
    report: Callable[[str], None] = print

    def folder(self, name: str) -> Path:
        """The folder of a dataset.

        >>> Setup().folder("letor_mq2007")
        Traceback (most recent call last):
        rankpolicy.types.RankPolicyError: this target reads letor_mq2007: say where with --data DIR, the folder that holds it, ...
        """
        if self.data is None:
            raise RankPolicyError(
                f"this target reads {name}: say where with --data DIR, the folder that holds it, or with RANKPOLICY_DATA."
            )
        folder = self.data / name
        if not folder.is_dir():
            raise RankPolicyError(f"this target reads {name}; {self.data} has no such folder.")
        return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A table or figure: its name on the command line, what it shows, the datasets it reads, and the run."""

    name: str
    what: str
    run: Callable[[Setup], Outcome]
    datasets: tuple[str, ...] = ()
