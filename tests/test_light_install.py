"""The library imports lightly, and runs where only torch and numpy are installed."""

import json
import subprocess
import sys

import pytest

from tests.array_numbers import numbers, numbers_of_datasets

HEAVY = (
    "numba",
    "lightgbm",
    "sklearn",
    "scipy",
    "polars",
    "pandas",
    "pyarrow",
    "transformers",
    "matplotlib",
    "triton",
    "rich",
    "typer",
    "starlette",
    "uvicorn",
    "msgspec",
    "apsw",
    "httpx",
)

IMPORTS = """
import sys, rankpolicy
print([name for name in {heavy!r} + ("torch", "numpy") if name in sys.modules])
"""

BANDIT = """
import sys, rankpolicy as rp
rp.bandits.DcmTS(num_items=5, cutoff=2).rank()
print("torch" in sys.modules)
"""

SERVICE = """
import sys, asyncio, pathlib
from rankpolicy.service import RankingService, ServiceConfig
from rankpolicy.service.domain.messages import Item, RankRequest

async def serve_one():
    service = RankingService(ServiceConfig(db=sys.argv[1]))
    service.start()
    answer = await service.rank(RankRequest(query="q", items=[Item(id="a")]))
    assert answer.items[0].id == "a"
    service.stop()

asyncio.run(serve_one())
print([name for name in ("torch", "polars", "lightgbm", "matplotlib", "sklearn", "pandas") if name in sys.modules])
"""

WITHOUT = """
import sys
for name in {heavy!r}:
    sys.modules[name] = None  # import machinery takes this for "not installed"

import rankpolicy as rp
data = rp.make_web_search(20, random_state=0)
path = sys.argv[1]
rp.data.write_letor(data, path)
train = rp.read_letor(path)
ranker = rp.PGRank(epochs=2, num_networks=1).fit(train, valid=train)
table = rp.evaluate(ranker, train, ["ndcg@10", "map"])
print(table)
for call in (lambda: rp.LambdaMART().fit(train), lambda: table.to_frame()):
    try:
        call()
    except rp.MissingDependencyError as error:
        print(error)
"""

NUMBERS = """
import sys, json
sys.modules["torch"] = None
import numpy
from tests.array_numbers import numbers, numbers_of_datasets
print(json.dumps([numbers(numpy.asarray), numbers_of_datasets()]))
"""

LINEAR = """
import importlib.machinery, sys, json
find_spec = importlib.machinery.PathFinder.find_spec
if {light}:  # scipy looks at sys.modules["torch"], so that None there would not do
    importlib.machinery.PathFinder.find_spec = classmethod(
        lambda cls, name, *args: None if name.partition(".")[0] == "torch" else find_spec(name, *args)
    )
import rankpolicy as rp
from rankpolicy.data import make_fair_synthetic
web, fair = rp.make_web_search(30, random_state=0), make_fair_synthetic(30, random_state=0)
rankers = [
    (rp.PGRank(model="linear", epochs=5, learning_rate=0.02), web),
    (rp.PGRank(model="linear", epochs=3, reward="ap", num_networks=1), web),
    (rp.FairPGRank(epochs=10, strength=5.0), fair),
    (rp.FairExposure(strength=2.0), fair),
    (rp.FairLP(strength=2.0), fair),
    (rp.BoostedPolicy(num_trees=10), web),
    (rp.BoostedPolicy(num_trees=10, strength=5.0, min_items_in_leaf=2), fair),
    (rp.AdaRank(rounds=5), web),
    (rp.RankSVM(), web),
]
scores = [ranker.fit(data, valid=data, progress=False).predict(data).tolist() for ranker, data in rankers]
rankers[0][0].save(sys.argv[1])
assert rp.load(sys.argv[1]).predict(web).tolist() == scores[0]
rankings = rankers[0][0].sample(web[:2], num_samples=3, random_state=0)
print(json.dumps([scores, [rows.tolist() for rows in rankings], "torch" in sys.modules]))
"""


def run(program, *arguments, light=True):
    command = [sys.executable, "-c", program.format(heavy=HEAVY, light=light), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy():
    assert run(IMPORTS).strip() == "[]"


def test_a_bandit_ranks_without_torch():
    assert run(BANDIT).strip() == "False"


def test_a_service_of_bandits_loads_no_torch(tmp_path):
    assert run(SERVICE, tmp_path / "service.db").strip() == "[]"


def test_torch_and_numpy_are_enough(tmp_path):
    pytest.importorskip("torch")
    output = run(WITHOUT, tmp_path / "data.txt")
    assert "ndcg@10" in output
    assert "LambdaMART needs lightgbm: pip install lightgbm" in output
    assert "pip install 'rankpolicy[frames]'" in output


def test_numbers_without_torch_are_those_of_tensors():
    torch = pytest.importorskip("torch")
    of_arrays, of_datasets = json.loads(run(NUMBERS))
    for without, expected in ((of_arrays, numbers(torch.from_numpy)), (of_datasets, numbers_of_datasets())):
        assert without.keys() == expected.keys()
        for name, values in expected.items():
            assert without[name] == pytest.approx(values, rel=1e-12, abs=1e-12, nan_ok=True), name


def test_rankers_without_torch_are_those_with_torch(tmp_path):
    pytest.importorskip("torch")
    scores, rankings, has_torch = json.loads(run(LINEAR, tmp_path / "model.rp"))
    assert not has_torch
    with_torch = json.loads(run(LINEAR, tmp_path / "model.rp", light=False))
    assert rankings == with_torch[1]
    for number, (without, expected) in enumerate(zip(scores, with_torch[0], strict=True)):
        assert without == pytest.approx(expected, rel=1e-6, abs=1e-6), number
