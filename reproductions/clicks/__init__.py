"""Clicks against grades made apart from them: what click models and inverse propensities know about relevance. There is no paper."""

from reproductions.clicks import clara2, clara2_clicked
from reproductions.clicks.clara2_log import DATASET
from reproductions.clicks.statements import STATEMENTS
from reproductions.target import Target

TARGETS = (
    Target(
        name="clicks/clara2",
        statements=STATEMENTS["clicks/clara2"],
        what="relevance from the clicks of a real log, scored by human grades; position bias and held-out clicks of the same log",
        run=clara2.run,
        datasets=(DATASET,),
        untested=(
            (
                "inverse propensities from positions swapped at random (the method swaps) beat raw click-through",
                "the log has no pages whose positions were swapped at random",
            ),
        ),
    ),
    Target(
        name="clicks/clara2-clicked",
        statements=STATEMENTS["clicks/clara2-clicked"],
        what="four hypotheses about the order of the clicked urls, with the urls that nobody clicked tied for every method",
        run=clara2_clicked.run,
        datasets=(DATASET,),
    ),
)
