"""Report of ``rankpolicy loop``: what a ranker learned from clicks would change, with what is known about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rankpolicy.experiments.click_loop import MOST_WEIGHT, NUM_FOLDS, ClickLoop, QueryChange
from rankpolicy.rankers.base import Ranker
from rankpolicy.reports import figures
from rankpolicy.reports.bias_report import position_bias_figure
from rankpolicy.reports.html import Cell, Section, html_page, macro, paragraph, table
from rankpolicy.reports.run_record import RunRecord

_MOST_QUERIES, _MOST_FEATURES, _LONGEST = 10, 10, 32


def loop_page(learned: ClickLoop, trees: Ranker, files: Sequence[str], run: RunRecord) -> str:
    """The HTML page.

    Parameters
    ----------
    learned
        What was learned.
    trees
        The trees that the engine gets.
    files
        Names of the files of the engine.
    run
        Command, seed, data and versions.
    """
    uplift = learned.uplift
    mean, low, high = uplift.relative
    verdict = "more clicks" if low > 0 else "fewer clicks" if high < 0 else "no difference that this log can show"
    return html_page(
        "From clicks to a model",
        f"Expected: {verdict}. Clicks per session {uplift.clicks:.3f} as logged, {uplift.expected:.3f} with the new order: {mean:+.1%}, "
        f"{uplift.level:.0%} interval from {low:+.1%} to {high:+.1%}.",
        [
            Section(title="Expected uplift", fragments=tuple(_uplift(learned))),
            Section(
                title="Queries that lose",
                fragments=tuple(_queries(uplift.queries, "No clicked query is expected to lose.")),
            ),
            Section(
                title="Queries that gain",
                fragments=tuple(_queries(uplift.queries[::-1], "No clicked query is expected to gain.", -1)),
            ),
            Section(title="Position bias", fragments=tuple(_bias(learned))),
            Section(title="What the model reads", fragments=tuple(_model(learned, trees, files))),
        ],
        run,
    )


def _uplift(learned: ClickLoop) -> Iterator[str]:
    uplift = learned.uplift
    (difference, *bounds), (relative, *relative_bounds) = uplift.difference, uplift.relative
    rows: list[list[str | Cell]] = [
        ["clicks per session, as logged", Cell(f"{uplift.clicks:.4f}")],
        ["clicks per session, expected", Cell(f"{uplift.expected:.4f}")],
        ["difference", Cell(f"{difference:+.4f}", below=f"{bounds[0]:+.4f} to {bounds[1]:+.4f}")],
        ["relative", Cell(f"{relative:+.1%}", below=f"{relative_bounds[0]:+.1%} to {relative_bounds[1]:+.1%}")],
        ["sessions whose first item changes", Cell(f"{uplift.first_changed:.0%}")],
    ]
    losing = sum(change.expected < change.clicks for change in uplift.queries)
    yield table(
        ["", "value"],
        rows,
        caption=f"{uplift.num_sessions:,} sessions of {uplift.num_queries:,} queries; below differences the {uplift.level:.0%} interval of "
        f"a bootstrap over queries. {losing} of {len(uplift.queries)} clicked queries lose.",
    )
    yield paragraph(
        "What the estimate rests on: users examine ranks by the propensities below, whatever is shown there, and click an examined item as "
        "often at its new rank. A click therefore counts propensity of the new rank / propensity of the old one, at most "
        f"{MOST_WEIGHT:g} ({uplift.num_clipped:,} clicks were cut). Only items that were shown are moved, so new finds count nothing; "
        "items without features go to the end of their list. Clicks are not purchases."
    )
    yield paragraph(
        f"Every query was ranked by a model that had not seen it: {NUM_FOLDS} models, each fitted to the judgments of the others. The "
        "model that the engine gets is fitted to all. An experiment on live traffic is the proof; this estimate says if it is worth one."
        + (
            f" {learned.sessions_left_out:,} sessions of queries without features are left out."
            if learned.sessions_left_out
            else ""
        )
    )


def _queries(changes: Sequence[QueryChange], none: str, sign: int = 1) -> Iterator[str]:
    chosen = [change for change in changes if sign * (change.expected - change.clicks) < 0][:_MOST_QUERIES]
    if not chosen:
        yield paragraph(none)
        return
    rows: list[list[str | Cell]] = [
        [
            _short(change.query),
            Cell(f"{change.sessions:,}"),
            Cell(f"{change.clicks:g}"),
            Cell(f"{change.expected:.1f}"),
            Cell(f"{change.expected - change.clicks:+.1f}"),
            _short(change.before),
            "the same" if change.after == change.before else _short(change.after),
        ]
        for change in chosen
    ]
    yield table(
        ["query", "sessions", "clicks", "expected", "difference", "first item now", "first item then"],
        rows,
        caption="Clicks in all sessions of a query; the first items are those of its last session. Few sessions say little.",
    )


def _bias(learned: ClickLoop) -> Iterator[str]:
    bias = learned.bias
    drawn = figures.svg(position_bias_figure({bias.method: bias}), "position bias by rank")
    bars = ", bars intervals" if bias.num_resamples else ""
    yield macro(
        "figure", drawn, f"How likely users examine a rank, relative to the first{bars}; dashed: click-through."
    )
    if not learned.is_bias_measured:
        yield paragraph(
            "The log does not determine position bias: hardly any clicked item was shown at several ranks. The examination of a "
            "position-based click model stands in, which rests on few clicks and on its prior. Let some searches be answered in a "
            "slightly random order, and it can be measured."
        )
    if np.isnan(bias.propensities).any():
        yield paragraph("A rank that the log does not determine is taken for the one above it.")


def _model(learned: ClickLoop, trees: Ranker, files: Sequence[str]) -> Iterator[str]:
    names = trees.feature_names_ or [f"feature {number}" for number in range(1, trees.num_features_ + 1)]
    shares = trees.feature_importances_
    best = np.argsort(-shares, kind="stable")[:_MOST_FEATURES]
    rows: list[list[str | Cell]] = [[_short(str(names[index])), Cell(f"{shares[index]:.1%}")] for index in best]
    yield table(["feature", "share of the gain"], rows, caption="What the splits of the trees gained in training.")
    is_distilled = trees is not learned.ranker
    yield paragraph(
        f"{learned.ranker.name} learned from {learned.num_judged_queries:,} queries with clicks, judged by the {learned.model.title} model "
        f"(judgments.json, which OpenSearch imports){'; the engine gets trees that were distilled from it' if is_distilled else ''}. "
        f"Files for the engine: {', '.join(files)}."
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
