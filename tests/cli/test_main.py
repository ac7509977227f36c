import subprocess
import sys

import pytest

from rankpolicy import MissingDependencyError, __version__
from rankpolicy.cli import main

VERBS = ("demo", "train", "evaluate", "predict", "compare", "doctor")


def test_without_a_verb_it_shows_help(rankpolicy):
    result = rankpolicy()
    assert result.status == 0
    assert all(verb in result.stdout for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples_and_json(rankpolicy, verb):
    result = rankpolicy(verb, "--help")
    assert result.status == 0
    assert "--json" in result.stdout
    assert "Examples" in result.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_seed(refused, verb):
    assert "No such option: --nonsense" in refused(verb, "--seed", "1", "--nonsense")


def test_version(rankpolicy):
    assert rankpolicy("--version").stdout == f"rankpolicy {__version__}\n"


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
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2


def test_as_a_process_it_prints_the_error_and_no_traceback():
    code = "from rankpolicy.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "evaluate", "none.rp", "--data", "x"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "error: no model file at none.rp.\n"
