"""Rankers that learn online from the clicks of simulated users: how fast, and what the logger's users lose. There is no paper."""

from reproductions.online import learning, safety
from reproductions.online.statements import STATEMENTS
from reproductions.target import Target

TARGETS = (
    Target(
        name="online/learning",
        statements=STATEMENTS["online/learning"],
        what="NDCG@10 of SafePolicyGradient, PDGD and DBGD after 100 to 100,000 clicks of users who fit its click model and who do not",
        run=learning.run,
        datasets=learning.DATASETS,
    ),
    Target(
        name="online/safety",
        statements=STATEMENTS["online/safety"],
        what="what 200 runs lose against the logger when users reverse what they prefer, at random or whenever a policy is promoted",
        run=safety.run,
        datasets=safety.DATASETS,
    ),
)
