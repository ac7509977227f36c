"""The generated pages are those of the kept results, and only runs of a commit are kept."""

import json

import numpy as np
import pytest

from rankpolicy.types import RankPolicyError
from reproductions import TARGETS, results
from reproductions.figures import FIGURES, FOLDER, figure_of
from reproductions.pages import (
    HEADING,
    ROOT,
    is_older_than_its_setup,
    judged_target,
    pages,
    provenance,
    summary,
    unmeasured,
    with_claims,
)
from reproductions.paired import EQUIVALENT, better, not_worse
from reproductions.results import read_result, setup_of
from reproductions.statements import Claim, Judged, Origin, Statement, Verdict, judged, verdict
from reproductions.target import Target


def test_pages_are_up_to_date():
    stale = [file for file, text in pages().items() if not file.is_file() or file.read_text("utf-8") != text]
    assert stale == [], "run python -m reproductions.pages"


LIMITS = "\n\n**What this does not show.**"


def missing_limits(page, names):
    """The targets whose claims are in no section of the page that has a paragraph on what it does not show."""
    sections = [section for section in page.split("\n## ") if LIMITS in section]
    return [name for name in names if not any(f"<!-- claims: {name} -->" in section for section in sections)]


def test_the_section_of_every_target_says_what_it_does_not_show():
    missing = []
    for name in TARGETS:
        page = ROOT / name.split("/")[0].replace("-", "_") / "README.md"
        missing += missing_limits(page.read_text("utf-8") if page.is_file() else "", [name])
    assert not missing, (
        f"no section of the paper's page has both <!-- claims: TARGET --> and a paragraph that starts {LIMITS.strip()}: "
        + ", ".join(missing)
    )


def test_limits_are_looked_for_in_the_section_of_the_target():
    page = (
        f"# Paper\n\n## A\n\n<!-- claims: p/a -->\n<!-- end -->\n\n### Part{LIMITS} One collection.\n"
        "\n## B\n\n<!-- claims: p/b -->\n<!-- end -->\n"
        f"\n## C\n\nAs p/b.{LIMITS.replace(chr(10), ' ')} Not a paragraph.\n\n<!-- claims: p/c -->\n<!-- end -->\n"
        f"\n## D\n\nNames p/d, without its claims.{LIMITS} More.\n"
    )
    assert missing_limits(page, ["p/a", "p/b", "p/c", "p/d"]) == ["p/b", "p/c", "p/d"]


@pytest.mark.parametrize(
    ("interval", "claimed", "expected"),
    [
        ((0.1, 0.3), {"above": 0}, Verdict.HOLDS),
        ((-0.3, -0.1), {"above": 0}, Verdict.CONTRADICTED),
        ((-0.1, 0.3), {"above": 0}, Verdict.NOT_SHOWN),
        ((0.0, 0.0), {"above": 0}, Verdict.CONTRADICTED),  # a tie is not above
        ((1.0, 1.0), {"at_least": 1, "at_most": 1}, Verdict.HOLDS),
        ((-0.004, 0.004), {"at_least": -0.01, "at_most": 0.01}, Verdict.HOLDS),
        ((-0.004, 0.014), {"at_least": -0.01, "at_most": 0.01}, Verdict.NOT_SHOWN),
        ((0.011, 0.014), {"at_least": -0.01, "at_most": 0.01}, Verdict.CONTRADICTED),
        ((None, None), {"above": 0}, Verdict.NOT_SHOWN),
        ((float("nan"), 1.0), {"above": 0}, Verdict.NOT_SHOWN),
    ],
)
def test_a_verdict_is_where_the_interval_lies(interval, claimed, expected):
    assert verdict(*interval, **claimed) is expected


def claim(low, high=None, **fields):
    high = low if high is None else high
    return Claim(
        **{"claim": f"x is {low}", "paper": "a | b", "ours": "0.5", "low": low, "high": high, "above": 0.0, **fields}
    )


def test_a_statement_holds_where_all_of_its_claims_do_and_is_contradicted_where_one_is():
    statement = Statement(words="x is positive", claims="x")
    assert Judged(statement, (claim(1), claim(2))).verdict is Verdict.HOLDS
    assert Judged(statement, (claim(1), claim(-1, 1))).verdict is Verdict.NOT_SHOWN
    assert Judged(statement, (claim(1), claim(-1, 1), claim(-1))).verdict is Verdict.CONTRADICTED


def test_what_the_published_numbers_fail_is_not_counted_against_us():
    fails = claim(-1, published=-2.0)
    assert fails.verdict is Verdict.NOT_SHOWN
    assert fails.fails_as_published
    assert claim(-1, published=2.0).verdict is Verdict.CONTRADICTED
    assert "published numbers fail" in Judged(Statement(words="x", claims="x"), (fails,)).counts


def test_a_claim_belongs_to_the_first_statement_that_finds_it():
    first, second = Statement(words="first", claims="x is 1"), Statement(words="second", claims="x")
    found = judged((first, second), [claim(1), claim(2), claim(3, claim="y")])
    assert [(each.statement.words, len(each.claims)) for each in found] == [("first", 1), ("second", 1), ("y", 1)]
    assert found[-1].statement.origin is Origin.QUESTION


@pytest.mark.parametrize("name", TARGETS)
def test_every_claim_has_a_statement_and_every_statement_its_claims_and_a_reason(name):
    found = judged_target(TARGETS[name])
    assert {each.statement for each in found} <= set(TARGETS[name].statements)
    if not is_older_than_its_setup(read_result(name)):
        assert unmeasured(TARGETS[name]) == []
    unexplained = [
        each.statement.words for each in found if each.verdict is not Verdict.HOLDS and not each.statement.reason
    ]
    assert unexplained == [], "a statement that does not hold says why"


def test_claims_come_back_as_they_were_written():
    written = claim(-1, 1, published=2.0)
    assert Claim.from_dict(written.to_dict()) == written
    assert written.to_dict()["verdict"] == "not shown"
    assert "low" not in claim(float("nan")).to_dict()


@pytest.mark.parametrize(("target", "name"), [(target, name) for target, names in FIGURES.items() for name in names])
def test_every_figure_is_drawn_kept_and_on_the_page_of_its_paper(target, name):
    axes = [
        each for each in figure_of(target, name).axes if each.lines or each.images or each.patches or each.containers
    ]
    assert axes
    assert (FOLDER / f"{name}.svg").is_file(), "run python -m reproductions.figures"
    assert f"(../figures/{name}.svg)" in (ROOT / target.split("/")[0].replace("-", "_") / "README.md").read_text(
        "utf-8"
    )


def test_twelve_figures_show_published_points():
    circles = ("published", "a run of the authors' code")
    labels = {
        name: {text for axes in figure_of(target, name).axes for text in axes.get_legend_handles_labels()[1]}
        for target, names in FIGURES.items()
        for name in names
    }
    assert sum(any(text.startswith(circles) for text in texts) for texts in labels.values()) >= 12


def test_the_summary_fits_on_a_page_and_opens_with_sums_and_statements():
    lines = summary().splitlines()
    assert len(lines) <= 150
    assert lines[0] == HEADING
    assert lines[4] == "| | holds | contradicted | not shown | not tested |"
    assert sum(line.count("|") == 5 and not line.startswith("|---") for line in lines) > 60


@pytest.mark.parametrize("name", TARGETS)
def test_a_kept_result_is_not_older_than_its_setup_or_its_page_says_so(name):
    result = read_result(name)
    is_older = result.setup != setup_of(TARGETS[name])
    assert not (is_older and result.setup), f"the code of {name} changed: run it again and keep the result"
    assert ("Older than its set-up" in provenance(result)) == is_older
    page = (ROOT / name.split("/")[0].replace("-", "_") / "README.md").read_text("utf-8")
    assert provenance(result) in page


def test_layout_and_docstrings_are_no_setup(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "ROOT", tmp_path)
    file = tmp_path / "reproductions" / "paper.py"
    file.parent.mkdir()

    def digest(code):
        file.write_text(code)

        def run(setup):
            raise AssertionError

        run.__module__ = "reproductions.paper"
        return setup_of(Target(name="paper/table", what="a table", run=run))

    before = digest("def run(setup):\n    return 1\n")
    assert digest('def run(setup):\n    """Words."""\n\n    return 1  # why\n') == before
    assert digest("import math\n\n\ndef run(setup):\n    return 1\n") == before  # where a name comes from
    assert digest("def run(setup):\n    return 2\n") != before


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Keep a run with a claim of each verdict."""
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")

    def keep(commit="abcdef1234", smoke=False, **arguments):
        record = {
            "started": "2026-01-02T03:04:05+00:00",
            "duration_seconds": 90.0,
            "seed": 0,
            "versions": {"numpy": "9.9"},
            "machine": {"processor": "an abacus", "cores": 2},
        }
        document = {
            "target": "paper/table",
            "rows": [{"x": 1}],
            "claims": [each.to_dict() for each in (claim(1), claim(-1), claim(-2, 2))],
            "smoke": smoke,
            "commit": commit,
            "run": record,
        }
        (tmp_path / "reproduce.json").write_text(json.dumps(document))
        return results.keep(tmp_path, **arguments)

    return keep


TABLE = {
    "paper/table": Target(
        name="paper/table",
        what="a table",
        run=lambda setup: None,
        statements=(
            Statement(words="one is positive", claims="x is 1"),
            Statement(words="the others are", claims="x is", reason="they are not"),
        ),
        untested=(("on Yahoo", "not to be had"),),
    ),
    "paper/other": Target(name="paper/other", what="another", run=lambda setup: None),
}


def test_the_summary_lists_statements_with_verdict_and_reason(kept):
    kept()
    page = summary(TABLE)
    assert "| statements of the paper | 1 | 1 | 0 | 1 |" in page
    assert "| one is positive | holds |  | table |" in page
    assert "| the others are | **contradicted** | they are not | table |" in page
    assert "| on Yahoo | not tested | not to be had | table |" in page


def test_claims_are_written_where_a_page_marks_them(kept):
    kept()
    page = with_claims("before\n<!-- claims: paper/table -->\nstale\n<!-- end -->\nafter\n", TABLE)
    assert page.startswith("before\n<!-- claims: paper/table -->\n| claim |")
    assert (
        "| **the others are** | *statement of the paper* | 0 of 2 hold, 1 contradicted, 1 not shown | **contradicted** |"
        in page
    )
    assert "| x is 1 | a \\| b | 0.5 | holds |" in page
    assert "numpy 9.9; an abacus, 2 cores" in page
    assert page.endswith("<!-- end -->\nafter\n")
    assert "stale" not in page
    assert with_claims(page, TABLE) == page
    said = with_claims("<!-- statements: paper -->\n<!-- end -->\n", TABLE)
    assert "| one is positive | holds |  | table |" in said


def test_only_whole_runs_of_a_commit_are_kept(kept):
    with pytest.raises(RankPolicyError, match="smoke run"):
        kept(smoke=True)
    for commit in (None, "abcdef+"):
        with pytest.raises(RankPolicyError, match="commit set-up and claims first"):
            kept(commit=commit)
    assert json.loads(kept(commit=None, commit_of_run="fedcba").read_text())["commit"] == "fedcba"


def test_better_needs_an_interval_above_zero():
    theirs = np.zeros(4)
    assert better("A", [1, 1, 1, 1.1], theirs, paper="", unit="seeds").holds
    noisy = [4, -3, 4, -3]  # mean 0.5, standard error 2.0
    assert better("A", noisy, theirs, paper="", unit="seeds").verdict is Verdict.NOT_SHOWN
    assert better("A", [-1, -1, -1, -1.1], theirs, paper="", unit="seeds").verdict is Verdict.CONTRADICTED
    assert not_worse("A", noisy, theirs, paper="", unit="seeds").verdict is Verdict.NOT_SHOWN
    level = [EQUIVALENT / 2, -EQUIVALENT / 2] * 2
    assert not_worse("A", level, theirs, paper="", unit="seeds").holds
    assert not_worse("A", [-1, -1, -1, -1.1], theirs, paper="", unit="seeds").verdict is Verdict.CONTRADICTED


def test_units_that_cannot_be_measured_are_left_out():
    found = better("A", [1, np.nan, 1.2, 1], [0, 5, 0, np.nan], paper="", unit="queries")
    assert found.ours.endswith("over 2 queries")
