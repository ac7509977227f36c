"""What the web search experiments share: MQ2007 as the paper cuts it, and its settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankpolicy.data import read_folds, split_queries
from rankpolicy.data.arrays import concatenate
from rankpolicy.data.folds import Fold
from rankpolicy.models import MLP, Highway
from rankpolicy.rankers.networks.bandit_rank import PAPER_REWARDS
from reproductions.target import Setup

FOLDER = "letor_mq2007"
NUM_SMOKE_QUERIES = 20

# "a feed forward layer with three highway network layers followed by an output layer with a sigmoid unit. The dimensions of the highway
# layer were set to 92." "Adam optimizer with the beta parameters set to (0, 0.999), and a weight decay of 1e-6"; "A dropout of 0.4 was
# applied to all layers. An initial learning rate of 7e-5 was used for all models. We set M', B to M' = 40 and B = 30"; "ε = 0.1 for all the
# experiments"; "all the best results of BanditRank were achieved in less than 30 epochs"; "We directly use those vectors". The paper names
# no batch size; one query per step is how eq. 8 reads (README).
PAPER_SETTINGS: dict[str, Any] = {
    "reward": PAPER_REWARDS["R4"],
    "model": Highway(hidden=(92, 92, 92), dropout=0.4),
    "num_networks": 1,
    "scaling": "none",
    "learning_rate": 7e-5,
    "weight_decay": 1e-6,
    "batch_queries": 1,
    "num_samples": 30,
    "max_positions": 40,
    "epsilon": 0.1,
    "control": "greedy",
    "epochs": 30,
    "patience": None,
}
# A plain network with as many weights (55,681) as that highway network (55,753): four layers, the first in place of the projection.
PLAIN_SAME_WEIGHTS = MLP(hidden=(128, 128, 128, 128), dropout=0.4)


PAPER_BETAS = (0.0, 0.999)


def random_splits(setup: Setup, *, num_splits: int, with_empty_queries: bool = False) -> list[Fold]:
    """Random 60-20-20 splits of the queries; a smoke run takes one or two splits of a few queries.

    Parameters
    ----------
    setup
        The run; its seed draws the splits.
    num_splits
        How many.
    with_empty_queries
        Whether to split all queries, or only those with a relevant item, as the paper does.
    """
    first = read_folds(setup.folder(FOLDER))[0]
    # The training, validation and test part of any one of LETOR's folds are all of its queries.
    queries = concatenate([first.train, first.valid, first.test])
    if not with_empty_queries:
        queries, _ = queries.drop_queries_without_relevant_items()
    if setup.is_smoke:
        # Few queries are empty: to have some in every part takes more.
        size, num_splits = (4 * NUM_SMOKE_QUERIES, 2) if with_empty_queries else (NUM_SMOKE_QUERIES, 1)
        queries = queries[:size]
    seeds = np.random.SeedSequence(setup.seed).generate_state(num_splits)
    return [
        Fold(name=f"split {number}", train=train, valid=valid, test=test)
        for number, seed in enumerate(seeds, 1)
        for train, valid, test in [split_queries(queries, (0.6, 0.2, 0.2), random_state=int(seed))]
    ]
