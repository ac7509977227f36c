import subprocess
import sys

HEAVY = ("numba", "polars", "pandas", "pyarrow", "scipy", "sklearn", "lightgbm", "zstandard")


def test_importing_data_loads_nothing_heavy():
    code = f"import sys, rankpolicy.data; print([name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_reading_splitting_and_making_datasets_loads_no_torch_of_its_own(tmp_path):
    code = f"""
import sys
import rankpolicy.data.dataset
before = "torch" in sys.modules
from rankpolicy import data
from rankpolicy.data.fingerprints import fingerprint
from rankpolicy.data.scaling import fit_scaling
made = data.make_web_search(5)
data.write_letor(made, {str(tmp_path / "data.txt")!r})
read = data.read_letor({str(tmp_path / "data.txt")!r})
data.split_queries(read)
list(data.k_fold(read, 2))
data.make_fair_synthetic(2)
fingerprint(read)
fit_scaling("quantile", read).apply(read.features)
data.from_texts(["who?"], [["me", "you"]], [[1, 0]])
data.Vocabulary.of(["who?"])
print(before == ("torch" in sys.modules))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "True"
