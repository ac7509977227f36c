"""Numbers of Kveton et al. 2015, "Cascading Bandits: Learning to Rank in the Cascade Model".

Regret after 100,000 steps, mean and standard error of 20 runs; the first K of L items attract with p = 0.2, the others with p - Δ.
"""

from reproductions.regret_cells import Published

# Table 1: (L, K, Δ) -> regret of CascadeUCB1 and its standard error, of CascadeKL-UCB and its standard error.
_TABLE_1 = {
    (16, 2, 0.15): (1290.1, 11.3, 357.9, 5.5),
    (16, 4, 0.15): (986.8, 10.8, 275.1, 5.8),
    (16, 8, 0.15): (574.8, 7.9, 149.1, 3.2),
    (32, 2, 0.15): (2695.9, 19.8, 761.2, 10.4),
    (32, 4, 0.15): (2256.8, 12.8, 633.2, 7.0),
    (32, 8, 0.15): (1581.0, 20.3, 435.4, 5.7),
    (16, 2, 0.075): (2077.0, 32.9, 766.0, 18.0),
    (16, 4, 0.075): (1520.4, 23.4, 538.5, 12.5),
    (16, 8, 0.075): (725.4, 12.0, 321.0, 16.3),
}

TABLE_1: dict[tuple[int, int, float], dict[str, Published]] = {
    cell: {
        "cascade-ucb1": Published(regret=ucb1, standard_error=ucb1_error),
        "cascade-kl-ucb": Published(regret=kl_ucb, standard_error=kl_ucb_error),
    }
    for cell, (ucb1, ucb1_error, kl_ucb, kl_ucb_error) in _TABLE_1.items()
}
