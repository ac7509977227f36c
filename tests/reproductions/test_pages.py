"""The generated pages are those of the kept results, and only runs of a commit are kept."""

import json

import numpy as np
import pytest

from rankpolicy.types import RankPolicyError
from reproductions import TARGETS, results
from reproductions.pages import ROOT, pages, summary, with_claims
from reproductions.paired import better, not_worse
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


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Keep a run of one claim that holds and one that fails."""
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")

    def keep(commit="abcdef1234", smoke=False, **arguments):
        claims = [
            {"claim": f"claim {holds}", "paper": "a | b", "ours": "0.5", "holds": holds} for holds in (True, False)
        ]
        record = {"started": "2026-01-02T03:04:05+00:00", "duration_seconds": 90.0, "seed": 0}
        document = {
            "target": "paper/table",
            "rows": [{"x": 1}],
            "claims": claims,
            "smoke": smoke,
            "commit": commit,
            "run": record,
        }
        (tmp_path / "reproduce.json").write_text(json.dumps(document))
        return results.keep(tmp_path, **arguments)

    return keep


TABLE = {
    "paper/table": Target(
        name="paper/table", what="a table", run=lambda setup: None, untested=(("on Yahoo", "not to be had"),)
    ),
    "paper/other": Target(name="paper/other", what="another", run=lambda setup: None),
}


def test_the_summary_lists_claims_that_hold_fail_and_are_not_tested(kept):
    kept()
    page = summary(TABLE)
    assert "1 claims hold, 1 fail, 1 are not tested; 1 of 2 targets have a result that is kept here." in page
    assert "| claim True | a \\| b | 0.5 | yes |" in page
    assert "| claim False | a \\| b | 0.5 | **no** |" in page
    assert "| on Yahoo | | not to be had | not tested |" in page
    assert "| [paper/other](#paperother) | another | | |  | no result kept | | |" in page


def test_claims_are_written_where_a_page_marks_them(kept):
    kept()
    page = with_claims("before\n<!-- claims: paper/table -->\nstale\n<!-- end -->\nafter\n", TABLE)
    assert page.startswith("before\n<!-- claims: paper/table -->\n| claim |")
    assert page.endswith("not tested |\n<!-- end -->\nafter\n")
    assert "stale" not in page
    assert with_claims(page, TABLE) == page


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
    assert not better("A", noisy, theirs, paper="", unit="seeds").holds
    assert not_worse("A", noisy, theirs, paper="", unit="seeds").holds
    assert not not_worse("A", [-1, -1, -1, -1.1], theirs, paper="", unit="seeds").holds


def test_units_that_cannot_be_measured_are_left_out():
    claim = better("A", [1, np.nan, 1.2, 1], [0, 5, 0, np.nan], paper="", unit="queries")
    assert claim.ours.endswith("over 2 queries")
