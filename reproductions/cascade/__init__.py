"""Kveton, Szepesvári, Wen & Ashkan (2015), Cascading Bandits: Learning to Rank in the Cascade Model."""

from reproductions.cascade import second, table1, table2
from reproductions.cascade.statements import STATEMENTS
from reproductions.target import Target

TARGETS = (
    Target(
        name="cascade/table1",
        statements=STATEMENTS["cascade/table1"],
        what="regret of CascadeUCB1 and CascadeKL-UCB by number of items, of positions, and gap",
        run=table1.run,
    ),
    Target(
        name="cascade/table2",
        statements=STATEMENTS["cascade/table2"],
        what="the same with lists upside down, the best item last",
        run=table2.run,
        untested=(("the regrets that the table prints", "its numbers are not at hand"),),
    ),
    Target(
        name="cascade/second",
        statements=STATEMENTS["cascade/second"],
        what="Table 1 by a second implementation in NumPy, beside the package and the printed values",
        run=second.run,
    ),
)
