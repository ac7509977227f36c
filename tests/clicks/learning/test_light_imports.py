"""What learning from labels, and estimating position bias, leave unloaded; each in a fresh process."""

import subprocess
import sys

LABELS = """
import sys, rankpolicy as rp
train, test = rp.split_queries(rp.make_web_search(12, random_state=0), (0.5, 0.5))
ranker = rp.PGRank(epochs=1, num_networks=1).fit(train, valid=test)
ranker.save({path!r})
rp.load({path!r}).rank(test)
rp.evaluate(ranker, test)
print([name for name in sys.modules if name.startswith("rankpolicy.clicks")])
"""
VERBS = """
import sys
from rankpolicy.cli.main import main
sys.argv = {call!r}
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print([name for name in sys.modules if name.startswith("rankpolicy.clicks")])
"""
CLICKS = """
import sys, numpy as np, rankpolicy as rp
log = rp.read_click_log({path!r})
bias = rp.estimate_position_bias(log, method="all-pairs", num_resamples=0)
items = rp.from_arrays(np.zeros((2, 1)), qid=["q", "q"], item_ids=["x", "y"])
train = rp.dataset_from_clicks(items, log, bias)
assert (train.label_kind, train.num_queries) == ("relevances", 1)
print([name for name in sys.modules if name.split(".")[0] == "torch"])
"""


def output_of(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_learning_from_labels_loads_nothing_of_clicks(tmp_path):
    assert output_of(LABELS.format(path=str(tmp_path / "m.rp"))) == "[]"


def test_verbs_on_labels_load_nothing_of_clicks(tmp_path):
    lines = [f"{item % 2} qid:{item // 3} 1:{item * 0.1} 2:{-item * 0.2}" for item in range(12)]
    (tmp_path / "data.txt").write_text("\n".join(lines) + "\n")
    data, model = str(tmp_path / "data.txt"), str(tmp_path / "m.rp")
    train = ["rankpolicy", "train", "--method", "pg-rank", "--data", data, "--out", model, "--set", "epochs=1"]
    for call in (train, ["rankpolicy", "evaluate", model, "--data", data]):
        assert output_of(VERBS.format(call=call)).splitlines()[-1] == "[]"


def test_position_bias_and_datasets_from_clicks_need_no_torch(tmp_path):
    rows = ["session,query,item,position,clicked"]
    for session, (first, second) in enumerate([("x", "y"), ("y", "x")] * 2):
        rows += [f"{session},q,{first},1,1", f"{session},q,{second},2,{session // 2}"]
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    assert output_of(CLICKS.format(path=str(tmp_path / "log.csv"))) == "[]"
