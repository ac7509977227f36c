"""The last section of a report: how the page was made."""

from __future__ import annotations

from rankpolicy.reports.html import Cell, Section, command, paragraph, table
from rankpolicy.reports.run_record import RunRecord


def how_made(run: RunRecord) -> Section:
    """The section with the command, seed, data and versions of a run.

    Parameters
    ----------
    run
        The record of the run.
    """
    data: list[list[str | Cell]] = [
        [
            role,
            str(facts.get("path", "")),
            Cell(str(facts.get("queries", "–"))),
            Cell(str(facts.get("items", "–"))),
            facts["sha256"][:16],
        ]
        for role, facts in run.data.items()
    ]
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return Section(
        title="How this page was made",
        parts=(
            command(run.command),
            paragraph(f"Seed {run.seed}; started {run.started}; took {run.duration_seconds:.1f} s."),
            table(["data", "from", "queries", "items", "sha256"], data),
            paragraph(versions, soft=True),
        ),
    )
