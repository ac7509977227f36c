import ast
import os
import subprocess
import sys

import pytest

import rankpolicy as rp
from rankpolicy import MissingDependencyError, __version__
from rankpolicy.cli import main, verbs
from rankpolicy.optional import hidden_from

GROUPS = {"clicks": verbs.CLICKS_VERBS, "service": verbs.SERVICE_VERBS}
VERBS = tuple(verb for verb in verbs.VERBS if verb not in GROUPS)
HEAVY = (
    "torch",
    "numpy",
    "numba",
    "polars",
    "scipy",
    "lightgbm",
    "matplotlib",
    "starlette",
    "uvicorn",
    "apsw",
    "msgspec",
    "httpx",
)


def test_without_a_verb_it_shows_help(rankpolicy):
    result = rankpolicy()
    assert result.status == 0
    assert all(verb in result.stdout for verb in VERBS)


ALL_VERBS = [*VERBS, *(f"{group} {verb}" for group, members in GROUPS.items() for verb in members)]


@pytest.mark.parametrize("verb", ALL_VERBS)
def test_every_verb_has_help_with_examples_and_json(rankpolicy, verb):
    result = rankpolicy(*verb.split(), "--help")
    assert result.status == 0
    assert "--json" in result.stdout
    assert "Examples" in result.stdout


@pytest.mark.parametrize("verb", ALL_VERBS)
def test_every_verb_has_a_seed(refused, verb):
    assert "No such option: --nonsense" in refused(*verb.split(), "--seed", "1", "--nonsense")


def test_version(rankpolicy):
    assert rankpolicy("--version").stdout == f"rankpolicy {__version__}\n"


@pytest.mark.parametrize("group", [(), *((name,) for name in GROUPS)])
def test_the_list_of_verbs_fits_a_terminal(rankpolicy, group):
    known = GROUPS[group[0]] if group else verbs.VERBS
    shown = rankpolicy(*group, "--help").stdout
    for name, summary in known.items():
        assert any(name in line and summary in line for line in shown.splitlines())


LIGHT = """
import sys
from rankpolicy.cli.main import run

calls = [["--help"], ["--version"], []]
calls += [[*verb.split(), "--help"] for verb in {verbs!r}]
for call in calls:
    assert run(call) == 0, call
print([name for name in {heavy!r} if name in sys.modules])
"""


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    ).stdout


def test_help_and_version_load_nothing_heavy():
    grouped = [f"{group} {verb}" for group, members in GROUPS.items() for verb in members]
    code = LIGHT.format(verbs=[*verbs.VERBS, *grouped], heavy=HEAVY)
    assert python(code).splitlines()[-1] == "[]"


COMPLETE = """
import atexit, sys
from rankpolicy.cli.main import main

atexit.register(lambda: print([name for name in {heavy!r} if name in sys.modules]))
main()
"""


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("rankpolicy tr", ["train", "tradeoff"]),
        ("rankpolicy clicks f", ["fit"]),
        ("rankpolicy compare --vari", ["--variant"]),
        ("rankpolicy methods pg", ["pg-rank"]),
    ],
)
def test_the_shell_completes_verbs_and_options_without_loading_anything_heavy(typed, completed):
    position = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    shown = python(COMPLETE.format(heavy=HEAVY), _RANKPOLICY_COMPLETE="complete_bash", **position).splitlines()
    assert shown == [*completed, "[]"]


def test_completion_can_be_installed(rankpolicy):
    shown = rankpolicy("--help").stdout
    assert "--install-completion" in shown
    assert "--show-completion" in shown


def test_usage_errors_are_one_line(refused):
    assert "Did you mean 'train'? See: rankpolicy --help." in refused("trian")
    assert "--data" in refused("evaluate", "model.rp")
    assert "--seed" in refused("doctor", "--seed", "one")
    assert "See: rankpolicy predict --help." in refused("predict", "--nonsense")


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (
            MissingDependencyError("Figures need matplotlib: pip install matplotlib."),
            2,
            "error: Figures need matplotlib",
        ),
        (PermissionError(13, "Permission denied", "model.rp"), 2, "error: Permission denied: model.rp\n"),
        (KeyboardInterrupt(), 130, "interrupted.\n"),
    ],
)
def test_what_cannot_go_on_is_said_in_one_line(rankpolicy, monkeypatch, error, status, message):
    def fail(document):
        raise error

    monkeypatch.setattr("rankpolicy.cli.doctor.print_json", fail)
    result = rankpolicy("doctor", "--json")
    assert result.status == status
    assert result.stderr.startswith(message)
    assert "Traceback" not in result.stderr


def test_the_entry_point_ends_with_the_status(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rankpolicy", "nonsense"])
    monkeypatch.setitem(hidden_from, "lightgbm", ())  # restored afterwards: this process goes on
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2


def loaded_by(*call):
    """The heavy packages that a command loads, and what else it prints."""
    code = COMPLETE.format(heavy=[*HEAVY, "sklearn", "pandas"])
    done = subprocess.run([sys.executable, "-c", code, *call], capture_output=True, text=True)
    *printed, heavy = done.stdout.splitlines()
    return ast.literal_eval(heavy), [*printed, *done.stderr.splitlines()]


def test_a_file_that_is_missing_is_reported_without_loading_anything_heavy():
    heavy, printed = loaded_by("evaluate", "none.rp", "--data", "x")
    assert printed == ["error: no model file at none.rp."]
    assert not {"torch", "numba", "scipy", "lightgbm"} & set(heavy)


def test_trees_are_read_without_what_lightgbm_has_for_scikit_learn(tmp_path):
    data = rp.make_web_search(10, items_per_query=(5, 8), num_features=8)
    rp.LambdaMART(num_trees=2, min_items_in_leaf=1).fit(data, verbose=False).save(tmp_path / "model.rp")
    rp.data.write_letor(data, tmp_path / "data.txt")
    heavy, printed = loaded_by("evaluate", str(tmp_path / "model.rp"), "--data", str(tmp_path / "data.txt"))
    assert any("ndcg@10" in line for line in printed)
    assert "lightgbm" in heavy
    assert not {"sklearn", "pandas"} & set(heavy)


def test_as_a_process_it_prints_the_error_and_no_traceback():
    code = "from rankpolicy.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "evaluate", "none.rp", "--data", "x"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "error: no model file at none.rp.\n"


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (["evaluate", "model.rp", "--group", "gender"], "--group is now --protected."),
        (["tradeoff", "--groups", "gender"], "--groups is now --protected."),
        (["tradeoff", "--group-feature", "3"], "--group-feature is now --protected-feature."),
        (["compare", "--jobs", "2"], "--jobs is now --executor, as in --executor processes:4."),
        (["train", "--workers", "2"], "--workers is now --executor, as in --executor processes:2."),
        (["predict", "--jobs", "2"], "No such option: --jobs"),
        (["tune", "--method", "regression"], "tune needs --data."),
    ],
)
def test_an_option_of_another_name_or_a_missing_one_is_one_line(refused, call, answer):
    assert answer in refused(*call)


@pytest.mark.parametrize("executor", ["processes:", "processes:0", "processes:two", "serial:1:2"])
def test_an_executor_is_a_name_and_a_number(refused, folder, tmp_path, executor):
    call = ["simulate", "--steps", 1, "--runs", 1, "--out", tmp_path, "--executor", executor]
    assert "--executor must be a name or NAME:N, as in processes:4" in refused(*call)
