"""Code blocks of pages run, in order, and what goes wrong stops the build."""

from pathlib import Path

import pytest

from docs.building import code_blocks
from docs.building.code_blocks import BlockError, blocks_of, run_page
from docs.building.page_process import run_blocks
from tests.waits import wait_until

state_of_code = code_blocks._state_of_code


@pytest.fixture(autouse=True)
def kept_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(code_blocks, "_KEPT", tmp_path / "kept")
    monkeypatch.setattr(code_blocks, "_state_of_code", lambda: "the same")


def page(*blocks):
    return "\n\n".join(f"```{head}\n{code}\n```" for head, code in blocks) + "\n"


def test_blocks_share_names_and_a_folder_and_show_what_they_print():
    text = page(("python", "a = 2"), ("bash", "echo three > file"), ("python", "print(a, open('file').read())\na + 1"))
    shown = run_page("page", text)
    assert "```python\na = 2\n```" in shown
    assert ":class: output\n\n2 three\n\n3\n```" in shown
    assert run_page("page", text) == shown  # from what was kept


def test_hidden_parts_are_run_and_not_shown():
    shown = run_page("page", page(("python hide", "a = 41"), ("python hide-code", "print(a + 1)")))
    assert "```python" not in shown
    assert "42" in shown


def test_a_failing_block_stops_the_build():
    with pytest.raises(BlockError, match="name 'nothing' is not defined"):
        run_page("page", page(("python", "nothing")))
    with pytest.raises(BlockError, match="block 1"):
        run_page("page", page(("bash", "false")))


def test_what_a_page_starts_ends_with_it(tmp_path):
    run_page("page", page(("bash", f"sleep 60 > /dev/null 2>&1 &\necho $! > {tmp_path / 'pid'}")))
    process = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_running(process))
    assert not is_running(process)


def is_running(process):
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_errors_that_a_page_shows_must_happen():
    shown = run_page("page", page(("python fails", "raise ValueError('what must hold')")))
    assert "ValueError: what must hold" in shown
    with pytest.raises(BlockError, match="should have failed"):
        run_page("page", page(("python fails", "1 + 1")))


def test_a_warning_stops_the_build():
    with pytest.raises(BlockError, match="old"):
        run_page("page", page(("python", "import warnings\nwarnings.warn('old')")))


@pytest.mark.parametrize(
    "output",
    [
        "{'accepted': 0, 'duplicate': 0, 'orphan': 0, 'late': 1, 'rejected': []}",
        "{'accepted': 1, 'duplicate': 0, 'orphan': 2, 'late': 0, 'rejected': []}",
        "error: no such file",
    ],
)
def test_a_block_that_shows_a_failure_stops_the_build(output):
    with pytest.raises(BlockError, match="shows a failure"):
        run_page("page", page(("python", f"print({output!r})")))
    accepted = "{'accepted': 1, 'duplicate': 0, 'orphan': 0, 'late': 0, 'rejected': []}"
    assert accepted in run_page("page", page(("python", f"print({accepted!r})")))


def test_pages_run_again_with_another_version_of_a_library(monkeypatch):
    before = state_of_code()
    assert state_of_code() == before
    monkeypatch.setattr(code_blocks.importlib.metadata, "distributions", list)
    assert state_of_code() != before


def test_figures_are_described():
    code = "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()"
    shown = run_page("page", page(('python alt="An empty figure."', code)))
    assert '<figure class="drawn"><svg role="img" aria-label="An empty figure."' in shown
    with pytest.raises(BlockError, match="say what it shows"):
        run_page("page", page(("python", code)))
    with pytest.raises(BlockError, match="draws no figure"):
        run_page("page", page(('python alt="Nothing."', "1")))


def test_unknown_words_after_the_language_are_refused():
    with pytest.raises(BlockError, match="hidden"):
        blocks_of(page(("python hidden", "1")))


def test_other_languages_are_only_shown():
    text = page(("text", "rm -rf /"), ("json", "{}"))
    assert run_page("page", text) == text
    assert run_blocks([]) == []
