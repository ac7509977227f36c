"""Click models run where only torch and numpy are installed; importing them loads nothing heavy."""

import subprocess
import sys

from rankpolicy.clicks import CLICK_MODELS

PROGRAM = """
import sys
import rankpolicy.clicks as clicks
heavy = ("numba", "polars", "scipy", "matplotlib", "pyarrow", "rich", "typer")
print([name for name in heavy if name in sys.modules])
for name in heavy:
    sys.modules[name] = None  # import machinery takes this for "not installed"
log = clicks.make_click_log(clicks.make_click_model("dbn", random_state=0), 200, random_state=1)
print([name for name in clicks.CLICK_MODELS if clicks.fit_click_model(name, log).perplexity(log).overall < 2])
try:
    clicks.read_click_log("log.csv")
except ImportError as error:
    print(error)
"""


def test_torch_and_numpy_are_enough():
    output = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    loaded, fitted, missing = output.splitlines()
    assert loaded == "[]"
    assert fitted == str(list(CLICK_MODELS))
    assert missing == "A table of clicks needs polars: pip install 'rankpolicy[frames]'"
