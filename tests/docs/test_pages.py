"""Pages that are written by hand: links lead somewhere, nothing that can be typed escapes the build, listings work."""

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import rankpolicy as rp
from docs.building.code_blocks import blocks_of
from docs.building.extension import generated_pages
from docs.building.results_pages import results_pages, with_results
from docs.building.site_links import problems
from rankpolicy.bandits import BANDITS
from rankpolicy.clicks import CLICK_MODELS
from rankpolicy.metrics import METRICS
from rankpolicy.models import MODELS
from rankpolicy.rankers import RANKERS
from reproductions import TARGETS as TARGETS_OF_PAPERS
from reproductions.results import read_result

DOCS = Path(__file__).parents[2] / "docs"
GENERATED = generated_pages()
PAGES = {
    str(path.relative_to(DOCS)): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
    if str(path.relative_to(DOCS)) not in GENERATED and "python" not in path.parts
}
NOT_RUN = ("service/deployment.md", "service/threat-model.md")
TARGETS = set(re.findall(r"^\(([^)\s]+)\)=$", "\n".join(GENERATED.values()), re.M))


@pytest.mark.parametrize("page", [*PAGES, "service/http-api.md", "results/index.md"])
def test_links_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```$", "", (PAGES | GENERATED)[page], flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if link.startswith("#"):
            assert link[1:] in TARGETS, link
        elif "://" not in link:
            target = (DOCS / page).parent / link.partition("#")[0]
            assert str(target.resolve().relative_to(DOCS)) in {*PAGES, *GENERATED}, link


@pytest.mark.parametrize("page", [page for page in PAGES if page not in NOT_RUN])
def test_code_is_run_or_marked(page):
    """What can be typed is a python or bash block, which the build runs; ``console`` is for installing alone."""
    languages = re.findall(r"^(?:```|:{3,})([^\s:]\S*)", PAGES[page], re.M)
    assert {name for name in languages if not name.startswith("{")} <= {"python", "bash", "console", "text"}
    for code in re.findall(r"^```console\n(.*?)^```$", PAGES[page], re.M | re.S):
        assert all(line.startswith(("$ pip install", "$ python3 -m venv")) for line in code.splitlines())
    assert all(block.code.strip() for block in blocks_of(PAGES[page]))


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page, text in (PAGES | GENERATED).items():
        for content in re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.M | re.S):
            entries = [line for line in content.splitlines() if line and not line.startswith(":") and "*" not in line]
            listed |= {str(Path(page).parent / f"{entry}.md") for entry in entries}
    generated = {page for page in GENERATED if not page.startswith("reference/python/")}  # these by a pattern
    assert set(PAGES) - {"index.md"} | generated <= listed


def test_broken_links_of_a_built_site_are_noticed(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#here">1</a><a href="b.html#gone">2</a><a href="c.html">3</a>'
        '<script src="https://elsewhere.example/x.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="here"><a href="a.html">back</a><a href="https://example.org">out</a></p>')
    found = list(problems(tmp_path))
    assert len(found) == 3
    assert any("gone" in line for line in found)
    assert any("c.html" in line for line in found)
    assert any("another server" in line for line in found)


QUALITY = {
    "num_queries": {"web": 3},
    "means": {"AutoRanker": {"web": {"ndcg@10": 0.5, "map": 0.25}}},
    "mean_rank": {"AutoRanker": 1.0},
    "cpu_seconds": {"AutoRanker": 7.0},
    "ahead": {},
    "tests": [],
    "date": "2026-01-02",
    "commit": "abcdef",
    "versions": {"torch": "9.9"},
    "machine": {"processor": "an abacus", "cores": 2, "system": "Linux"},
}
SPEED = {
    "ratios": [
        {"benchmark": "evaluate", "name": "one|two", "what": "a / b", "ratio": 2.5, "floor": 3},
        {"benchmark": "position_bias", "name": "em-eta-2-positions-5", "ratio": 7.0, "floor": 1},
    ],
    "date": "2026-01-02",
    "commit": None,
}


def test_kept_results_are_shown_with_their_circumstances_and_left_out_where_there_are_none(tmp_path):
    page = "before\n\n<!-- results: quality -->\n\n<!-- results: speed -->\n\nafter"
    assert with_results(page, tmp_path).split() == ["before", "after"]
    assert "## Quality" not in results_pages(tmp_path)["results/index.md"]
    (tmp_path / "quality.json").write_text(json.dumps(QUALITY))
    (tmp_path / "speed.json").write_text(json.dumps(SPEED))
    for shown in (with_results(page, tmp_path), results_pages(tmp_path)["results/index.md"]):
        assert "| NDCG@10 | AutoRanker |\n|---|---|\n| web (3) | **.5000** |\n| **mean** | **.5000** |" in shown
        assert "| mean rank | 1.0 |\n| CPU s | 7 |" in shown
        assert "on 2026-01-02 at commit `abcdef` with torch 9.9 on an abacus, 2 cores, Linux" in shown
        assert "| one\\|two | a / b | **2.5** | 3 |" in shown
        assert "| method | 5 positions, η = 2 |\n|---|---|\n| em | 7 |" in shown


def test_every_claim_of_every_paper_is_on_a_page():
    pages = results_pages()
    for name, target in TARGETS_OF_PAPERS.items():
        page = pages[f"results/{name.partition('/')[0]}.md"]
        for claim in read_result(name).claims:
            assert claim.claim.replace("|", "\\|").replace("<", "&lt;").replace("$", "\\$") in page
        assert all(statement.replace("<", "&lt;") in page for statement, _ in target.untested)


KINDS = {"METRICS": METRICS, "MODELS": MODELS, "BANDITS": BANDITS, "RANKERS": RANKERS, "CLICK_MODELS": CLICK_MODELS}


@pytest.fixture
def added(tmp_path, monkeypatch):
    """The listings of the page on additions, each in a file and in the table of its kind."""
    names = {}
    for code in re.findall(r"^```\{code-block\} python\n(.*?)^```$", PAGES["how-to/extend.md"], re.M | re.S):
        head, _, rest = code.partition("\n")
        if line := re.match(r"# a line in (\w+), src/(\S+)", head):
            name, place = re.findall(r'"([^"]+)"', rest)
            attribute = place.partition(":")[2]
            monkeypatch.setitem(KINDS[line[1]].locations, name, place)
            monkeypatch.setitem(KINDS[line[1]]._loaded, name, names[place.partition(":")[0]][attribute])
            assert (DOCS.parent / "src" / line[2]).is_file()
        else:
            module = head.removeprefix("# src/").removesuffix(".py").replace("/", ".")
            file = tmp_path / f"{module}.py"
            file.write_text(rest)
            names[module] = runpy.run_path(str(file), run_name=module)
    return names


def test_additions_work_as_the_page_says(added):
    assert len(added) == len(KINDS)
    data = rp.make_web_search(12, random_state=0)
    ranker = rp.rankers.ranker_class_named("hinge-rank")(margin=0.5, model="factorised", epochs=2, num_networks=1)
    ranker.fit(data, progress=False)
    assert 0 < rp.evaluate(ranker, data, "mean(rprec, ndcg@10)").means["mean(rprec, ndcg@10)"] <= 1
    problem = rp.simulation.dcm_lower_bound_problem(4, 2, best=0.5, gap=0.4, termination=0.8)
    result = rp.simulation.simulate(["dcm-optimistic", "random"], problem, num_steps=300, num_runs=2)
    assert result.mean("dcm-optimistic")[-1] < result.mean("random")[-1]
    made = rp.clicks.make_click_model("dcm", random_state=0)
    log = rp.clicks.make_click_log(made, 500, random_state=1)
    stop = rp.fit_click_model("constant-stop", log).parameters["stop"]
    assert stop.shape == (1,)
    assert np.all((stop > 0) & (stop < 1))
