import subprocess
import sys

HEAVY = ("numba", "polars", "pandas", "pyarrow", "scipy", "sklearn", "lightgbm", "zstandard")


def test_importing_data_loads_nothing_heavy():
    code = f"import sys, rankpolicy.data; print([name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
