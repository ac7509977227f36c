"""The step functions are plain Python where numba is missing, and decide the same."""

import contextlib
import io
import subprocess
import sys

import pytest

pytest.importorskip("numba")

WITHOUT = """
import sys
sys.modules["numba"] = None  # import machinery takes this for "not installed"
"""
PROGRAM = """
from rankpolicy.bandits import BANDITS, QueryBandit
from rankpolicy.simulation import dcm_lower_bound_problem, simulate
for name, bandit_class in BANDITS.items():
    bandit = bandit_class(num_items=5, cutoff=2, random_state=4)
    for step in range(25):
        ranking = bandit.rank()
        bandit.learn(ranking, (ranking + step) % 3 == 0)
    print(name, bandit.rank().tolist(), bandit.memory.statistics.round(9).tolist())
queries = QueryBandit(bandit="dcm-kl-ucb", cutoff=2)
for step in range(900):
    ranking = queries.rank(step % 400, [4, 7, 9])
    queries.learn(step % 400, ranking, (ranking + step) % 3 == 0)
print(queries.counts_of(5, [4, 7, 9]).tolist(), queries.num_keys)
result = simulate(["dcm-ts", "random"], dcm_lower_bound_problem(5, 2, gap=0.15, termination=0.5), num_steps=30, num_runs=2)
assert 0 < result.mean("random")[-1] < 30
"""


def test_same_decisions_without_numba():
    plain = subprocess.run([sys.executable, "-c", WITHOUT + PROGRAM], capture_output=True, text=True, check=True).stdout
    compiled = io.StringIO()
    with contextlib.redirect_stdout(compiled):
        exec(PROGRAM, {})
    assert "dcm-ts" in plain
    assert plain == compiled.getvalue()
