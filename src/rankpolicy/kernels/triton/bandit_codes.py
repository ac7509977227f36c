"""How bandits on a GPU order items, and the whole numbers that their kernels are given."""

# The first three are indices of counts (bandits/indices.py); those from ranked-kl-ucb to ubm-ts have counts for every position.
KINDS = (
    "kl-ucb", "ucb1", "ts", "epsilon-greedy", "random", "ranked-kl-ucb", "ranked-exp3", "pbm-ucb", "pbm-ts", "pbm-pie",
    "ubm-ucb", "ubm-ts", "ccm-ts", "ccm-ucb", "dbn-ts", "dbn-ucb", "top-rank", "bubble-rank",
    "lin-ucb", "lin-ts",
)  # fmt: skip
KL_UCB, UCB1, TS, EPSILON_GREEDY, RANDOM = range(5)
RANKED_KL_UCB, RANKED_EXP3, PBM_UCB, PBM_TS, PBM_PIE, UBM_UCB, UBM_TS = range(5, 12)
CCM_TS, CCM_UCB, DBN_TS, DBN_UCB = range(12, 16)
TOP_RANK, BUBBLE_RANK = 16, 17
LIN_UCB, LIN_TS = 18, 19

NUMBERS = [
    "first_run", "first_step", "end_step", "first_wanted", "num_wanted", "num_items", "num_tables", "length", "width", "num_columns",
    "is_first", "num_settings", "window", "num_traced",
]  # fmt: skip
