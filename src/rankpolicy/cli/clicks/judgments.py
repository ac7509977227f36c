"""rankpolicy clicks judgments

Parameters
----------
log : LOG
    Yandex rows, UBI (.ndjson), .parquet or .csv, click tables too; or a folder of .parquet files, of any size.
model
    The click model; see: rankpolicy methods. coec is what OpenSearch computes.
prior : A,B|empirical|none
    Beta prior of every parameter; empirical learns it, so that items shown a few times are drawn to the mean.
rate_unclicked
    Rate items that were never clicked by the model too; without it they are rated 0, as COEC rates them.
max_rating
    Rating of an item that is certainly relevant.
name
    Name of the list of judgments; by default that of the model.
out : FILE
    The file of judgments, such as judgments.json.

Examples
--------
rankpolicy clicks judgments --log ubi.ndjson --model dcm --out judgments.json
rankpolicy clicks judgments --log sessions.parquet --model coec --out coec.json --max-rating 4
"""

from __future__ import annotations

from pathlib import Path

from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import check_can_write, facts_of_file, json_text, note_if_slow, show, write_file
from rankpolicy.cli.support.run import RunWithoutSeed


def judgments(
    *,
    log: Path,
    model: str = "dcm",
    log_format: options.LogFormat,
    prior: str = "empirical",
    rate_unclicked: bool = False,
    max_rating: float = 100.0,
    name: str | None = None,
    out: Path,
    run: RunWithoutSeed,
) -> None:
    """Rate the items of a click log, as a list of judgments that OpenSearch's search relevance workbench imports (IMPORT_JUDGMENT)."""
    from rankpolicy.clicks import CLICK_MODELS, ClickFitSettings, fit_click_model, judgments_of
    from rankpolicy.clicks.models.judgments import check_distinguishes_items
    from rankpolicy.declarations.setting_texts import parse_setting

    check_distinguishes_items(CLICK_MODELS.named(model))
    check_can_write(out, option="--out", inputs={"--log": log})
    with note_if_slow(f"reading {log} ..."):
        sessions = log_format.read(log).collapsed()
    with note_if_slow(f"fitting {model} ..."):
        fitted = fit_click_model(model, sessions, prior=parse_setting(ClickFitSettings, "prior", prior))
    document = judgments_of(fitted, clicked_in=None if rate_unclicked else sessions, name=name, max_rating=max_rating)
    write_file(out, json_text(document))
    queries, ratings = len(document["judgmentRatings"]), len(fitted.pairs)
    run.finish(
        {"queries": queries, "ratings": ratings, "judgments": str(out)},
        data={"log": facts_of_file(log)},
        settings={model: {"prior": prior, "max_rating": max_rating}},
        show_results=lambda: show(f"{model}: {ratings} ratings of {queries} queries\n{out}"),
    )
