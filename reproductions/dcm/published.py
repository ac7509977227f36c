"""Numbers of Katariya et al. 2016, "DCM Bandits: Learning to Rank with Multiple Clicks", read from its own table and curves.

Regret after 100,000 steps or at the steps named, means of 20 runs. B_LB(L, A* = [K], p, Δ, γ): the first K items attract with p, the others
with p - Δ, and every position ends the search after a click with γ.
"""

# Figure 2a, "B_LB(L, A* = [K], p = 0.2, Δ, γ = 0.8)": (L, K, Δ) -> regret of dcmKL-UCB.
FIGURE_2A = {
    (16, 2, 0.15): 288.4,
    (16, 4, 0.15): 238.9,
    (16, 8, 0.15): 156.2,
    (32, 2, 0.15): 626.0,
    (32, 4, 0.15): 530.9,
    (32, 8, 0.15): 431.2,
    (16, 2, 0.075): 621.2,
    (16, 4, 0.075): 446.6,
    (16, 8, 0.075): 255.4,
}

# Figure 3a, "B_LB(L = 16, A* = [4], p = 0.2, Δ = 0.15, γ = 0.5)": regret at these steps.
FIGURE_3A_STEPS = (1_000, 5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000)
FIGURE_3A = {
    "dcm-kl-ucb": (59.9, 103.5, 118.8, 132.3, 145.8, 153.3, 158.6, 161.7),
    "first-click": (70.7, 120.9, 139.9, 155.5, 173.2, 182.6, 189.7, 195.5),
    "last-click": (69.2, 123.2, 144.5, 165.8, 184.9, 195.3, 202.7, 207.1),
}
