"""What the paper says about its tables, in our words, and what we ask besides."""

from reproductions.statements import Origin, Statement

STATEMENTS = {
    "cascade/table1": (
        Statement(
            words="the regrets of the table",
            claims="as published",
            reason="in two cells our interval reaches past 5 % or three printed errors; in one of them those are twice our own",
        ),
        Statement(words="CascadeKL-UCB has less regret than CascadeUCB1", claims="cascade-kl-ucb has less"),
        Statement(words="regret follows the O(L - K) of the bound", claims="positions have more|items have more"),
        Statement(words="a smaller gap means more regret", claims="more regret at Δ"),
    ),
    "cascade/table2": (
        Statement(
            words="with the best item last there is less regret, since the first items are observed most",
            claims="best item last",
            origin=Origin.QUESTION,
        ),
    ),
    "cascade/second": (
        Statement(
            words="the package and a second implementation agree within 5 %",
            claims="second implementation",
            origin=Origin.CHECK,
            reason="in some cells the intervals of 50 runs are wider than that; none contradicts it",
        ),
    ),
}
