"""Logs, click models and simulated bandits never load torch."""

import subprocess
import sys

PROGRAM = """
import sys
import rankpolicy as rp
from rankpolicy import simulation
from rankpolicy.clicks import CLICK_MODELS

log = rp.read_click_log(sys.argv[1])
table = rp.read_click_log(sys.argv[2])
for name in CLICK_MODELS:
    model = rp.fit_click_model(name, log, prior="empirical" if name == "dctr" else (1.0, 1.0))
    model.perplexity(table), model.sample("q_r", ["a", "b"], 3, random_state=0)
    model.save(sys.argv[3])
    user = rp.load(sys.argv[3]).user_of("q_r", ["a", "b", "c"])
    problem = simulation.stationary(user, 2)
    simulation.simulate(["random"], problem, num_steps=5, num_runs=1)
print("torch" in sys.modules)
"""


def test_reading_fitting_sampling_and_simulating_load_no_torch(tmp_path):
    rows = ["1\t0\tQ\tq\tr\ta\tb\tc", "1\t1\tC\tb", "2\t0\tQ\tq\tr\tb\ta\tc", "2\t2\tC\tb", "3\t0\tQ\tq\tr\tc\ta\tb"]
    (tmp_path / "log.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "log.csv").write_text("query,items,clicks\nq_r,a b c,0 1 0\n")
    paths = [str(tmp_path / name) for name in ("log.tsv", "log.csv", "model.json")]
    ran = subprocess.run([sys.executable, "-c", PROGRAM, *paths], capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert ran.stdout == "False\n"
