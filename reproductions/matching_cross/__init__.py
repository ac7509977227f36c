"""Qin, Li, Bendersky & Metzler (2020), Matching Cross Network for Learning to Rank in Personal Search.

The paper's words beside the settings are those of a summary of it in Japanese, put into English.
"""

from reproductions.matching_cross import clicks, correction, synthetic
from reproductions.matching_cross.statements import STATEMENTS
from reproductions.matching_cross.web_search_clicks import FOLDER
from reproductions.target import Target

TARGETS = (
    Target(
        name="matching-cross/synthetic",
        statements=STATEMENTS["matching-cross/synthetic"],
        what="three vectors, a label that two of them decide: learning curves of concatenation, latent cross and match",
        run=synthetic.run,
    ),
    Target(
        name="matching-cross/correction",
        statements=STATEMENTS["matching-cross/correction"],
        what="MQ2007 from biased clicks: naive, inverse propensities, doubly robust, beside true labels; with and without bias",
        run=correction.run,
        datasets=(FOLDER,),
    ),
    Target(
        name="matching-cross/clicks",
        statements=STATEMENTS["matching-cross/clicks"],
        what="a simulated log of product search with human grades: ways to join query, item and side information, beside DCN-v2",
        run=clicks.run,
        datasets=(clicks.FOLDER, clicks.WORD_VECTORS),
        untested=(
            (
                "MCN is better on the logs of Gmail and Drive",
                "these logs are private, and no public click log at hand has texts",
            ),
        ),
    ),
)
