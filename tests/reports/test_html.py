import re
import sys
from importlib.resources import files

import pytest

from rankpolicy import RankPolicyError
from rankpolicy.reports.figures import PALETTE
from rankpolicy.reports.html import Cell, Section, environment, html_page, macro, table, write_page
from rankpolicy.types import MissingDependencyError

CSS = (files("rankpolicy.reports") / "templates" / "report.css").read_text(encoding="utf-8")


def test_a_page_loads_nothing_and_runs_nothing():
    page = html_page("Title", "Lead.", [Section(title="Part", fragments=("<p>x</p>",))])
    assert not re.search(r"https?://|<script|<link|@import|url\(", page)
    assert CSS in page
    assert "<h2>Part</h2>" in page


def test_text_is_escaped():
    page = html_page("<b>", "a & b", [])
    assert "<h1>&lt;b&gt;</h1>" in page
    assert "a &amp; b" in page
    assert "<td>&lt;i&gt;</td>" in table(["x"], [["<i>"]])


def test_a_missing_jinja2_is_named(monkeypatch):
    environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingDependencyError, match=r"A page of HTML needs jinja2: pip install 'rankpolicy\[plot\]'"):
        html_page("Title", "Lead.", [])


def test_best_numbers_are_marked():
    text = table(["method", "map"], [["ours", Cell("0.5", is_best=True, below="0.4 to 0.6")]], caption="c")
    assert '<td class="number best">0.5<small>0.4 to 0.6</small></td>' in text


def test_wide_content_scrolls_inside_its_box_and_captions_stay_outside():
    for part in (table(["x"], [["1"]], caption="a & b"), macro("figure", "<svg></svg>", "a & b")):
        assert re.fullmatch(
            r'<figure><div class="scroll" tabindex="0"><(table|svg)>.*</\1></div><figcaption>a &amp; b</figcaption></figure>',
            part,
            re.DOTALL,
        )
    assert "figcaption" not in table(["x"], [["1"]])
    assert ".scroll { overflow-x: auto;" in CSS
    assert '<td class="long">' + "word " * 20 in table(["x"], [["word " * 20]])


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_and_lines_have_enough_contrast_in_light_and_dark():
    themes = [dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)]
    assert len(themes) == 2
    for theme in themes:
        for text in ("ink", "soft"):
            for ground in ("paper", "mark", "edge"):
                assert contrast(theme[text], theme[ground]) >= 4.5
        for place in range(len(PALETTE)):
            assert contrast(theme[f"c{place}"], theme["paper"]) >= 3


def test_a_page_appears_whole(tmp_path):
    write_page(tmp_path / "p.html", "<p>é</p>")
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == "<p>é</p>"
    assert [path.name for path in tmp_path.iterdir()] == ["p.html"]
    with pytest.raises(RankPolicyError, match="must be in a directory that exists"):
        write_page(tmp_path / "none" / "p.html", "")
