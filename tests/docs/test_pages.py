"""Pages that are written by hand: links lead somewhere, nothing that can be typed escapes the build, listings work."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import rankpolicy as rp
from docs.building.code_blocks import blocks_of
from docs.building.commands import command_page
from docs.building.public_names import reference_pages
from docs.building.site_links import problems
from rankpolicy.bandits import BANDITS
from rankpolicy.clicks import CLICK_MODELS
from rankpolicy.metrics import METRICS
from rankpolicy.models import MODELS
from rankpolicy.rankers import RANKERS

DOCS = Path(__file__).parents[2] / "docs"
GENERATED = {**reference_pages(), "reference/command-line.md": command_page()}
PAGES = {
    str(path.relative_to(DOCS)): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
    if str(path.relative_to(DOCS)) not in GENERATED and "python" not in path.parts
}
TARGETS = set(re.findall(r"^\(([^)\s]+)\)=$", "\n".join(GENERATED.values()), re.M))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if link.startswith("#"):
            assert link[1:] in TARGETS, link
        else:
            target = (DOCS / page).parent / link.partition("#")[0]
            assert str(target.resolve().relative_to(DOCS)) in {*PAGES, *GENERATED}, link


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ("deployment.md", "threat-model.md")])
def test_code_is_run_or_marked(page):
    """What can be typed is a python or bash block, which the build runs; ``console`` is for installing alone."""
    languages = re.findall(r"^(?:```|:{3,})([^\s:]\S*)", PAGES[page], re.M)
    assert {name for name in languages if not name.startswith("{")} <= {"python", "bash", "console", "text"}
    for code in re.findall(r"^```console\n(.*?)^```$", PAGES[page], re.M | re.S):
        assert all(line.startswith("$ pip install") for line in code.splitlines())
    assert all(block.code.strip() for block in blocks_of(PAGES[page]))


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page, text in PAGES.items():
        for content in re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.M | re.S):
            entries = [line for line in content.splitlines() if line and not line.startswith(":") and "*" not in line]
            listed |= {str(Path(page).parent / f"{entry}.md") for entry in entries}
    assert set(PAGES) - {"index.md"} <= listed


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
            monkeypatch.setitem(KINDS[line[1]]._places, name, place)
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
