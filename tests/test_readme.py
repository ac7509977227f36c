"""Every command and snippet of the README, and the scripts in examples/, run as they stand."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.quality.tables import groups_table, short_table
from docs.building import readme_figure

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
RUN = [(language, code) for language, code in BLOCKS if language in ("python", "bash")]


def test_the_readme_shows_the_quickstart():
    quickstart = (ROOT / "examples" / "quickstart.py").read_text()
    first = next(code for language, code in BLOCKS if language == "python")
    assert quickstart.endswith(first)
    assert len([line for line in first.splitlines() if line]) <= 15


def test_nothing_that_can_be_typed_escapes_the_next_test():
    """What installs (``sh``) is run by whatever installs the package; everything else is a block that runs, not an indented one."""
    assert {language for language, _ in BLOCKS} <= {"python", "bash", "sh"}
    assert [code for language, code in BLOCKS if language == "sh" if "rankpolicy " in code] == []
    outside = re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^(?: {4}|\t)\S.*", outside, re.MULTILINE) == []


def test_the_table_of_the_readme_is_what_the_benchmark_gave():
    kept = json.loads((ROOT / "docs" / "results" / "quality.json").read_text())
    assert short_table(kept) in README
    assert groups_table(kept) in README
    assert groups_table(kept) in (ROOT / "benchmarks" / "quality" / "README.md").read_text()
    assert f"`{kept['commit'][:7]}`" in README


def test_the_figure_of_the_readme_draws_every_competitor_of_its_panel():
    kept = json.loads((ROOT / "reproductions" / "results" / f"{readme_figure.TARGET}.json").read_text())
    points = {}
    for row in kept["rows"]:
        if row["panel"] == readme_figure.PANEL:
            points.setdefault(row["method"], set()).add((row["disparity"], row["utility"]))
    competitors = {method for method in points if not method.startswith(readme_figure.BEST)}
    assert {"FairPGRank, parity", "FairLP, equal exposure"} <= competitors
    everything = readme_figure.drawn().axes[0]
    lines = {line.get_label(): set(zip(*line.get_data(), strict=True)) for line in everything.get_lines()}
    assert lines == {method: points[method] for method in points if method not in readme_figure.NOT_COMPARED}
    assert competitors - set(lines) == {"FairPGRank, price, REINFORCE, twice the epochs"}


def test_the_words_about_the_figure_are_computed_from_what_it_draws():
    assert README.count(readme_figure.caption()) == 2  # in its place, and for those who do not see it


def test_extras_of_the_readme_exist():
    declared = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2]
    others = re.search(r"other extras: ([\w, ]+)", README)
    assert others is not None
    named = re.findall(r"pip install -e '\.\[(\w+)\]'", README) + others.group(1).split(", ")
    assert "serve" in named
    for extra in named:
        assert f"\n{extra} = [" in declared


def test_the_readme_can_be_typed_from_top_to_bottom(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for language, code in RUN:
        command = [sys.executable, "-c", code] if language == "python" else ["bash", "-euc", code]
        done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True)
        assert done.returncode == 0, f"{code}\n{done.stderr[-3000:]}"
        assert "Warning" not in done.stderr, f"{code}\n{done.stderr[-3000:]}"
        assert done.stdout or "bandit" in code


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("reproductions/*/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_notebooks_in_percent_format(path):
    """A title, then cells of text and code that notebook tools read; every code cell is whole."""
    start, *cells = re.split(r"^# %%( \[markdown\])?\n", path.read_text(), flags=re.MULTILINE)
    kinds, texts = cells[::2], cells[1::2]
    assert start == ""
    assert kinds[0]
    assert texts[0].startswith("# # ")
    assert None in kinds
    for kind, text in zip(kinds, texts, strict=True):
        if kind is None:
            compile(text, str(path), "exec")
        else:
            assert all(line.startswith("#") for line in text.splitlines() if line)


# The quickstart is what the README shows, and runs there.
@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.stem != "quickstart"], ids=lambda path: path.name)
def test_examples_run(path, tmp_path):
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
