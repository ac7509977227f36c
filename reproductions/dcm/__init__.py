"""Katariya, Kveton, Szepesvári & Wen (2016), DCM Bandits: Learning to Rank with Multiple Clicks.

The paper's words beside the settings are those of a talk about it (K. Takayama, 2016), put into English.
"""

from reproductions.dcm import figure2a, figure2b, figure2c, figure3a, figure3b, figure3c, robustness
from reproductions.dcm.statements import STATEMENTS
from reproductions.dcm.yandex_users import DATASET
from reproductions.target import Target

TARGETS = (
    Target(
        name="dcm/figure2a",
        statements=STATEMENTS["dcm/figure2a"],
        what="regret of dcmKL-UCB by number of items, of positions, and gap",
        run=figure2a.run,
    ),
    Target(
        name="dcm/figure2b",
        statements=STATEMENTS["dcm/figure2b"],
        what="regret of dcmKL-UCB by number of positions and probability to stop after a click",
        run=figure2b.run,
        untested=(("the regrets that the figure shows", "its numbers are not at hand, nor are its values of K and γ"),),
    ),
    Target(
        name="dcm/figure2c",
        statements=STATEMENTS["dcm/figure2c"],
        what="probability to stop after a click at each position, five queries of a Yandex log",
        run=figure2c.run,
        datasets=(DATASET,),
        untested=(
            ("the probabilities that the figure shows", "its numbers are not at hand, nor are the paper's queries"),
        ),
    ),
    Target(
        name="dcm/figure3a",
        statements=STATEMENTS["dcm/figure3a"],
        what="dcmKL-UCB beside First-Click and Last-Click; past the paper, Thompson sampling and KL-UCB without log log",
        run=figure3a.run,
    ),
    Target(
        name="dcm/figure3b",
        statements=STATEMENTS["dcm/figure3b"],
        what="dcmKL-UCB beside RankedKL-UCB",
        run=figure3b.run,
        untested=(("the regret of RankedKL-UCB at each step", "its numbers are not at hand"),),
    ),
    Target(
        name="dcm/figure3c",
        statements=STATEMENTS["dcm/figure3c"],
        what="users made from 20 queries of a Yandex log, all items, with v(10) as estimated and with v(10) = 0",
        run=figure3c.run,
        datasets=(DATASET,),
        untested=(("the regrets that the figure shows", "its numbers are not at hand, nor are the paper's queries"),),
    ),
    Target(
        name="dcm/robustness",
        statements=STATEMENTS["dcm/robustness"],
        what="past the paper: every bandit against every kind of user, v out of order among them",
        run=robustness.run,
    ),
)
