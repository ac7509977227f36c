"""What the workers of test_data_parallel.py run: ``python data_parallel_script.py FOLDER [die]``."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch

import rankpolicy as rp
from rankpolicy.training import data_parallel

DATA = rp.make_web_search(45, items_per_query=(3, 9), num_features=8, random_state=0)
TRAIN, VALID = DATA[:33], DATA[33:]  # 33 queries in batches of 8: the last batch has one query, and one worker none


class Own(torch.nn.Module):
    """A network that is not trained in a stack, so that torch's own optimizer steps."""

    def __init__(self, num_features):
        super().__init__()
        self.first, self.last = torch.nn.Linear(num_features, 8), torch.nn.Linear(8, 1)

    def forward(self, features):
        return self.last(torch.tanh(self.first(features))).squeeze(-1)


def own_network(num_features):
    torch.manual_seed(0)
    return Own(num_features)


def rankers():
    """Means over queries and over items, stacked networks and others, with validation and without."""
    options = {"epochs": 4, "batch_queries": 8, "learning_rate": 0.01}
    mlp = rp.models.MLP(hidden=(8,), dropout=0.0)  # which would draw other numbers on other workers
    return {
        "pg-rank": (rp.PGRank(model=mlp, num_networks=2, **options), VALID),
        "regression": (rp.Regression(model=mlp, **options), None),
        # One epoch: a user's network is given a seed at every step, and one process takes it from the stream that orders queries.
        "own network": (rp.PGRank(model=own_network, **options | {"epochs": 1}), VALID),
    }


def main(folder: Path, dies: bool) -> None:
    with data_parallel() as worker:
        if not dies:
            for name, (ranker, valid) in rankers().items():
                ranker.fit(TRAIN, valid=valid, progress=False)
                if worker.is_first:
                    np.savez(folder / f"{name}.npz", scores=ranker.predict(DATA), training=reports(ranker))

        def end(progress):
            if dies and worker.rank == 1 and not worker.is_restarted and progress.iteration == 3:
                os.kill(os.getpid(), signal.SIGKILL)

        checkpoint = folder / "training.checkpoint"
        # Drawn rankings and dropout: the streams of all workers must go on where they were.
        drawn = rp.PGRank(
            reward="ap",
            estimator="reinforce",
            num_samples=4,
            model=rp.models.MLP(hidden=(8,), dropout=0.2),
            epochs=6,
            batch_queries=8,
        )
        drawn.fit(
            TRAIN,
            valid=VALID,
            checkpoint=checkpoint,
            resume=worker.is_restarted and checkpoint.exists(),
            callbacks=[end],
            progress=False,
        )
        if worker.is_first:
            np.savez(folder / "drawn.npz", scores=drawn.predict(DATA), training=reports(drawn))


def reports(ranker):
    """What the objective reported after each epoch."""
    return next(iter(ranker.evals_result_["training"].values()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), "die" in sys.argv)
