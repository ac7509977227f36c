"""Tables and figures of the papers, run again: ours beside theirs, and their claims as statements that can fail.

Nothing imports this package but the command line. A folder a paper; its settings stand beside the paper's words, and its README shows what
was measured. To add a target: a module with ``run(setup) -> Outcome`` in the paper's folder and a line in that folder's TARGETS.
"""

from reproductions import banditrank, cascade, dcm, fair_pg_rank, matching_cross
from reproductions.target import Claim, Outcome, Setup, Target

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        *fair_pg_rank.TARGETS,
        *banditrank.TARGETS,
        *dcm.TARGETS,
        *cascade.TARGETS,
        *matching_cross.TARGETS,
    )
}

__all__ = ["TARGETS", "Claim", "Outcome", "Setup", "Target"]
