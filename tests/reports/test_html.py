import re

import pytest

from rankpolicy import RankPolicyError
from rankpolicy.reports.html import CSS, Cell, Section, html_page, table, write_page


def test_a_page_loads_nothing_and_runs_nothing():
    page = html_page("Title", "Lead.", [Section(title="Part", parts=("<p>x</p>",))])
    assert not re.search(r"https?://|<script|<link|@import|url\(", page)
    assert CSS in page
    assert "<h2>Part</h2>" in page


def test_text_is_escaped():
    page = html_page("<b>", "a & b", [])
    assert "<h1>&lt;b&gt;</h1>" in page
    assert "a &amp; b" in page
    assert "<td>&lt;i&gt;</td>" in table(["x"], [["<i>"]])


def test_best_numbers_are_marked():
    text = table(["method", "map"], [["ours", Cell("0.5", is_best=True, below="0.4 to 0.6")]], caption="c")
    assert '<td class="number best">0.5<small>0.4 to 0.6</small></td>' in text
    assert "<caption>c</caption>" in text


def test_a_page_appears_whole(tmp_path):
    write_page(tmp_path / "p.html", "<p>é</p>")
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == "<p>é</p>"
    assert [path.name for path in tmp_path.iterdir()] == ["p.html"]
    with pytest.raises(RankPolicyError, match="must be in a directory that exists"):
        write_page(tmp_path / "none" / "p.html", "")
