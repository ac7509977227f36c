"""Training through NCCL on a GPU: with one GPU there is one worker, so this tests the path of the gradients, not their sum."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import rankpolicy as rp

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
ROOT = Path(__file__).parents[2]

SCRIPT = """
import sys
import numpy as np, torch
from torch import distributed
import rankpolicy as rp
from rankpolicy.training import data_parallel as module
from rankpolicy.training.data_parallel import Worker, sum_over_workers

data = rp.make_web_search(45, items_per_query=(3, 9), num_features=8, random_state=0)
options = {"epochs": 4, "batch_queries": 8, "learning_rate": 0.01, "device": "cuda"}
mlp = rp.models.MLP(hidden=(8,), dropout=0.0)

torch.cuda.set_device(0)
distributed.init_process_group("cpu:gloo,cuda:nccl", init_method="file://" + sys.argv[1], rank=0, world_size=1)
sys.modules["rankpolicy.training.data_parallel"].current_worker.set(Worker(0, 1, False))  # data_parallel leaves a single worker alone
summed = [torch.arange(3.0, device="cuda"), torch.ones(2, 2, device="cuda")]
sum_over_workers(summed)
assert summed[0].tolist() == [0.0, 1.0, 2.0] and summed[1].is_cuda
ranker = rp.PGRank(model=mlp, **options).fit(data[:33], valid=data[33:], progress=False)
np.save(sys.argv[2], ranker.predict(data))
distributed.destroy_process_group()
"""


def test_one_worker_with_nccl_learns_and_learns_the_same_again(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    found = []
    for name in ("once", "again"):
        files = [str(tmp_path / f"{name}{end}") for end in (".rendezvous", ".npy")]
        command = [sys.executable, "-c", SCRIPT, *files]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        found.append(np.load(files[1]))
    np.testing.assert_array_equal(found[0], found[1])
    data = rp.make_web_search(45, items_per_query=(3, 9), num_features=8, random_state=0)
    ndcg = [
        rp.evaluate(scores, data, metrics=["ndcg@5"]).means["ndcg@5"] for scores in (found[0], np.zeros(len(found[0])))
    ]
    assert ndcg[0] > ndcg[1] + 0.1
