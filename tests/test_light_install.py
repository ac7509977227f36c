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


def run(program, *arguments):
    command = [sys.executable, "-c", program.format(heavy=HEAVY), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy():
    assert run(IMPORTS).strip() == "[]"


def test_a_bandit_ranks_without_torch():
    assert run(BANDIT).strip() == "False"


def test_a_service_of_bandits_loads_no_torch(tmp_path):
    assert run(SERVICE, tmp_path / "service.db").strip() == "[]"


def test_torch_and_numpy_are_enough(tmp_path):
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
