"""Pages of results, from the files that benchmarks and reproductions keep; no number on them is typed by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.quality.distillation import markdown as distillation_table
from benchmarks.quality.judgments import markdown as judgments_table
from benchmarks.quality.tables import markdown as quality_tables
from docs.building.ratio_tables import ratio_tables
from reproductions import TARGETS
from reproductions.pages import claims_table, judged_target, paper_statements, sums
from reproductions.results import read_result
from reproductions.statements import Verdict

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "results"

_MARK = re.compile(r"^<!-- results: (\w+) -->$", re.M)


def results_pages(folder: Path = FOLDER) -> dict[str, str]:
    """The overview and one page per paper, as Markdown, by path in docs/."""
    pages = {"results/index.md": "\n\n".join(_overview(folder)) + "\n"}
    for paper in papers():
        pages[f"results/{paper}.md"] = "\n\n".join(_paper_page(paper)) + "\n"
    return pages


def papers() -> list[str]:
    """The names of the papers that have targets, in the order of the targets."""
    return list(dict.fromkeys(name.partition("/")[0] for name in TARGETS))


def kept(name: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """What a benchmark kept; None where no run is kept."""
    file = folder / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def quality_section(folder: Path = FOLDER) -> list[str]:
    """Quality of rankings beside other libraries, as paragraphs; nothing where no run is kept."""
    quality = kept("quality", folder)
    if quality is None:
        return []
    return [
        "NDCG@10 and MAP on test queries (their number in brackets). Every library of boosted trees gets the same nine pairs of "
        "leaves and items per leaf, up to 1,000 trees, and early stopping on the same validation queries. The recipe of AutoRanker "
        "was frozen before this run; of its test queries, those of MQ2007 and MQ2008 had been seen in development, as training "
        "queries of other folds.",
        quality_tables(quality),
        circumstances_in_words(quality, "python -m benchmarks.quality --json > docs/results/quality.json"),
    ]


def speed_section(folder: Path = FOLDER) -> list[str]:
    """Ratios of speed as paragraphs; nothing where no run is kept."""
    speed = kept("speed", folder)
    if speed is None:
        return []
    return [
        *ratio_tables(speed["ratios"]),
        circumstances_in_words(speed, "python -m benchmarks --keep docs/results/speed.json"),
    ]


def distillation_section(folder: Path = FOLDER) -> list[str]:
    """What trees lose against the rankers they reproduce, as paragraphs; nothing where no run is kept."""
    distillation = kept("distillation", folder)
    if distillation is None:
        return []
    command = "python -m benchmarks.quality.distillation --json docs/results/distillation.json"
    return [distillation_table(distillation), circumstances_in_words(distillation, command)]


def judgments_section(folder: Path = FOLDER) -> list[str]:
    """Judgments of click models on human grades, as paragraphs; nothing where no run is kept."""
    judgments = kept("judgments", folder)
    if judgments is None:
        return []
    return [
        judgments_table(judgments),
        circumstances_in_words(
            judgments, "python -m benchmarks.quality.judgments --json > docs/results/judgments.json"
        ),
    ]


def with_results(markdown: str, folder: Path = FOLDER) -> str:
    """A page with kept results in the place of its lines ``<!-- results: quality -->``, ``distillation``, ``speed`` or ``judgments``.

    Parameters
    ----------
    markdown
        Text of the page.
    folder
        Where results are kept.
    """
    sections = {
        "quality": ("Quality", quality_section),
        "speed": ("Speed", speed_section),
        "distillation": ("What trees lose", distillation_section),
        "judgments": ("Against human grades", judgments_section),
    }

    def section(found: re.Match[str]) -> str:
        title, paragraphs_of = sections[found[1]]
        paragraphs = paragraphs_of(folder)
        return "\n\n".join([f"## {title}", *paragraphs]) if paragraphs else ""

    return _MARK.sub(section, markdown)


def circumstances_in_words(found: Mapping[str, Any], command: str | None = None) -> str:
    """Command, date, commit, versions and machine of a run, as far as they were recorded.

    Parameters
    ----------
    found
        What was kept of the run.
    command
        What was typed.
    """
    machine = found.get("machine") or {}
    versions = found.get("versions") or {}
    parts = [
        f"Made by `{command}`" if command else "",
        f"on {found['date']}" if found.get("date") else "",
        f"in {found['minutes']:g} minutes" if "minutes" in found else "",
        f"at commit `{found['commit'][:12]}`" if found.get("commit") else "",
        f"with {', '.join(f'{name} {version}' for name, version in versions.items())}" if versions else "",
        f"on {machine['processor']}, {machine['cores']} cores, {machine['system']}" if machine else "",
    ]
    return f"<small>{' '.join(part for part in parts if part)}.</small>"


def _overview(folder: Path) -> Iterator[str]:
    yield "# Results"
    yield (
        "What the library measures on public data, and the statements of papers, measured again. Everything here is generated "
        "from files that the runs left in the repository; what does not hold says so."
    )
    if quality := quality_section(folder):
        yield "## Quality of rankings"
        yield from quality
    if speed := speed_section(folder):
        yield "## Speed"
        yield from speed
    yield "## Statements of papers"
    yield (
        "Each target is a table or figure of a paper, run again. A statement holds where the 95 % intervals of all its claims lie "
        "inside what is claimed, is contradicted where one lies outside, and is not shown otherwise. `rankpolicy reproduce TARGET` "
        "runs one ([how](../how-to/reproduce.md))."
    )
    found = [each for target in TARGETS.values() for each in judged_target(target)]
    yield "\n".join(sums(found))
    rows = [_line(name) for name in TARGETS]
    yield (f"| target | what | {' | '.join(Verdict)} | not tested |\n" + "|---" * 6 + "|\n" + "\n".join(rows))
    yield "```{toctree}\n:hidden:\n\n" + "\n".join(papers()) + "\n```"


def _line(name: str) -> str:
    target = TARGETS[name]
    paper, _, part = name.partition("/")
    link = f"[{name}]({paper}.md#results-{paper}-{part})"
    untested = len(target.untested) or ""
    verdicts = [each.verdict for each in judged_target(target)]
    counts = " | ".join(str(verdicts.count(verdict)) for verdict in Verdict)
    return f"| {link} | {_cell(target.what)} | {counts} | {untested} |"


def _paper_page(paper: str) -> Iterator[str]:
    described = Path("reproductions", paper.replace("-", "_"), "README.md")
    yield (ROOT / described).read_text(encoding="utf-8").partition("\n")[0]  # its title
    yield f"How each target is set up, its figures, and what it does not show, are in `{described}` of the repository."
    yield _escaped("\n".join(paper_statements(paper)))
    for name, target in TARGETS.items():
        if name.partition("/")[0] != paper:
            continue
        yield f"(results-{name.replace('/', '-')})=\n## {name.partition('/')[2]}"
        yield f"{target.what[0].upper()}{target.what[1:]}."
        result = read_result(name)
        yield _escaped("\n".join(claims_table(target, result)))
        if result is not None:
            about = {"date": result.started[:10], "commit": result.commit, "minutes": result.minutes}
            about |= {"versions": result.versions, "machine": result.machine}
            yield circumstances_in_words(about, f"rankpolicy reproduce {name} --seed {result.seed}")


def _cell(text: str) -> str:
    return _escaped(text.replace("|", "\\|"))


def _escaped(text: str) -> str:
    """Text of claims, in which ``$``, ``<`` and ``*`` between spaces mean themselves."""
    return text.replace("$", "\\$").replace("<", "&lt;")
