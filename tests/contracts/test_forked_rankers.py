"""Every ranker fits, predicts and is evaluated in a forked process, as multiprocessing, gunicorn --preload and Celery start them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# A process of its own: the parent must have started the threads of all libraries, and a hang ends with the deadline.
PROGRAM = """
import os
import sys
import traceback

import numpy as np
import torch

import rankpolicy as rp
from tests.contracts.test_rankers import TRAIN, VALID, new_ranker

torch.set_num_threads(2)
many = rp.make_web_search(400, random_state=0)
rp.LambdaMART(num_trees=20).fit(many, verbose=False).predict(many)
rp.PGRank(epochs=1).fit(many[:100], verbose=False)
assert (torch.ones(1 << 20) * 2).sum() == 1 << 21

def results(name):
    ranker = new_ranker(name).fit(TRAIN, valid=VALID, verbose=False)
    return ranker, ranker.predict(VALID), rp.evaluate(ranker, VALID, ["ndcg"]).values

for name in sys.argv[1:]:
    ranker, scores, values = results(name)
    child = os.fork()
    if child == 0:
        try:
            np.testing.assert_allclose(ranker.predict(VALID), scores, rtol=1e-5, atol=1e-6)
            _, scores_of_child, values_of_child = results(name)
            np.testing.assert_allclose(scores_of_child, scores, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(values_of_child, values, atol=1e-4)
            ranker.predict(many.features, qid=many.query_of_item, protected=np.arange(many.num_items) % 2)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_every_ranker_works_in_a_forked_process():
    from rankpolicy.rankers import RANKERS

    run = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *RANKERS],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"OMP_NUM_THREADS": "2", "NUMBA_NUM_THREADS": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = run.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, 9)  # the forked process that hangs, too
        out, err = run.communicate()
    assert out.splitlines() == [f"{name} 0" for name in RANKERS], f"{out}\n{err[-4000:]}"
