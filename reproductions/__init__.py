"""Tables and figures of the papers, run again: our numbers beside theirs, and their claims as statements that can fail.

There is one folder per paper. The settings of a run are beside the words of the paper they come from, and the README of the folder shows
what was measured. Only ``rankpolicy reproduce`` and the tests import this package; it is not part of the wheel. To add a target, write a
module with ``run(setup) -> Outcome`` in the folder of the paper and add a line to the TARGETS of that folder.
"""

from reproductions import banditrank, cascade, clicks, dcm, fair_pg_rank, matching_cross, online
from reproductions.statements import Claim, Origin, Statement, Verdict, judged
from reproductions.target import Outcome, Setup, Target

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        *fair_pg_rank.TARGETS,
        *banditrank.TARGETS,
        *dcm.TARGETS,
        *cascade.TARGETS,
        *matching_cross.TARGETS,
        *clicks.TARGETS,
        *online.TARGETS,
    )
}

__all__ = ["TARGETS", "Claim", "Origin", "Outcome", "Setup", "Statement", "Target", "Verdict", "judged"]
