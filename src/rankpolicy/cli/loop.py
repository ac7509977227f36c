"""rankpolicy loop

Parameters
----------
ubi : LOG
    Queries and events of User Behavior Insights (.ndjson), or any other click log.
features
    Features of the items: .csv or .parquet with a row per query and item, or LETOR text.
engine
    The search engine that gets the ranker, such as opensearch; a wrong name lists them all.
method
    The method to learn; what is no tree ensemble is distilled into one.
click_model
    The click model of the judgments; see: rankpolicy methods.
bias_method
    How position bias is estimated; see: rankpolicy methods.
qid : COLUMN
    Column of the query's text.
item_id : COLUMN
    Column of the item's id; by default item_id.
ignore : COLUMNS
    Columns to leave out, separated by commas.
out
    A directory for report.html, loop.json, run.json, judgments.json, ranker.rp and the files of the engine.

Examples
--------
rankpolicy loop --ubi ubi.ndjson --features items.csv --engine opensearch --out runs/loop
rankpolicy loop --ubi sessions.parquet --features items.parquet --qid query_id --engine solr --method auto --out runs/loop
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.cli.support import options
from rankpolicy.cli.support.method_settings import parse_assignments, unfitted_ranker
from rankpolicy.cli.support.output import facts_of_file, json_text, note_if_slow, show
from rankpolicy.cli.support.run import Files, Run

if TYPE_CHECKING:
    from rankpolicy.experiments.click_loop import ClickLoop
    from rankpolicy.rankers import Ranker


def loop(
    *,
    ubi: Path,
    features: Path,
    engine: str,
    method: str = "lambdamart",
    settings: options.Set = None,
    click_model: str = "dcm",
    bias_method: str = "all-pairs",
    qid: str = "query",
    item_id: str | None = None,
    ignore: str | None = None,
    log_format: options.LogFormat,
    out: Path,
    run: Run,
) -> None:
    """From a log of searches to a better model in the search engine: judgments, a ranker, files of the engine, and a report.

    The report says what changes, how many clicks that is expected to add, with an interval and what it rests on, and which queries lose.
    """
    from rankpolicy.clicks import CLICK_MODELS
    from rankpolicy.clicks.models.judgments import check_distinguishes_items
    from rankpolicy.clicks.position_bias.members import POSITION_BIAS_METHODS
    from rankpolicy.data import read_dataset
    from rankpolicy.experiments.click_loop import learn_from_log
    from rankpolicy.rankers.exporting.engine_formats import FORMATS

    FORMATS.named(engine)
    POSITION_BIAS_METHODS.named(bias_method)
    check_distinguishes_items(CLICK_MODELS.named(click_model))
    ranker = unfitted_ranker(method, parse_assignments(settings or []), run.seed)
    run.make_directory(out)
    with note_if_slow(f"reading {ubi} and {features} ..."):
        log = log_format.read(ubi)
        ignored = [name.strip() for name in (ignore or "").split(",") if name.strip()]
        items = read_dataset(features, needs_labels=False, qid=qid, item_id=item_id, ignore=ignored)
    with note_if_slow(f"learning {method} from {log.num_clicks} clicks ..."):
        learned = learn_from_log(
            items, log, ranker, click_model=click_model, bias_method=bias_method, random_state=run.seed
        )
    trees = _trees(learned.ranker, items)
    assert run.directory is not None
    learned.ranker.save(run.directory / "ranker.rp")
    written = [path.name for path in trees.export(run.directory / f"model{FORMATS[engine].suffix}", format=engine)]
    facts = {
        "engine": engine,
        "files": written,
        "is_distilled": trees is not learned.ranker,
        "judged_queries": learned.num_judged_queries,
        "sessions_left_out": learned.sessions_left_out,
        "bias": learned.bias.to_dict(),
        "is_bias_measured": learned.is_bias_measured,
        "uplift": dataclasses.asdict(learned.uplift),
    }
    run.finish(
        facts,
        data={"log": facts_of_file(ubi), "features": facts_of_file(features, items)},
        settings={method: learned.ranker.to_dict()["settings"]},
        show_results=lambda: _show(learned, written),
        files=lambda record: _files(learned, trees, written, record),
    )


def _trees(ranker: Ranker, items: Any) -> Ranker:
    """Trees that score as the ranker: itself where it is trees."""
    from rankpolicy.rankers.distillation import distil
    from rankpolicy.rankers.trees.boosting import TreeRanker

    return ranker if isinstance(ranker, TreeRanker) else distil(ranker, items)


def _files(learned: ClickLoop, trees: Ranker, written: list[str], record: Any) -> Files:
    from rankpolicy.reports.loop_report import loop_page

    return {
        "judgments.json": json_text(learned.judgments),
        "report.html": loop_page(learned, trees, written, record),
    }


def _show(learned: ClickLoop, written: list[str]) -> None:
    uplift = learned.uplift
    mean, low, high = uplift.relative
    show(
        f"clicks per session {uplift.clicks:.4f} -> {uplift.expected:.4f}: {mean:+.1%} [{low:+.1%}, {high:+.1%}], "
        f"{uplift.level:.0%} interval over {uplift.num_queries} queries not seen in training, {uplift.num_sessions} sessions"
    )
    losing = sum(change.expected < change.clicks for change in uplift.queries)
    show(
        f"{losing} of {len(uplift.queries)} clicked queries lose; the first item changes in {uplift.first_changed:.0%} of sessions"
    )
    show(f"engine {', '.join(written)}", soft_wrap=True)
