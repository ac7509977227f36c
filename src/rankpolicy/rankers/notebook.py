"""A ranker in a notebook: what it is, the settings that differ from their defaults, whether it is fitted, and its learning curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.display import html_block, html_curve, html_table, short

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

_MOST_CURVES = 6


def ranker_html(ranker: Ranker) -> str:
    """The HTML of a ranker."""
    default = type(ranker)()
    # Compared as JSON holds them: a model that was loaded from a file is a value, the default a name.
    now, before = ranker._plain_settings(), default._plain_settings()
    changed = [
        (name, short(getattr(ranker, name)), short(getattr(default, name))) for name in now if now[name] != before[name]
    ]
    settings = html_table(changed, header=("setting", "value", "default")) if changed else "<div>default settings</div>"
    if not ranker.is_fitted:
        return html_block(f"{type(ranker).__name__}, not fitted", settings)
    best = "" if ranker.best_score_ is None else f", best score {ranker.best_score_:.4f}"
    state = f"<div>fitted on {ranker.num_features_} features; best iteration {ranker.best_iteration_}{best}</div>"
    curves = [
        html_curve(values, label=f"{data} {name}")
        for data, by_name in (ranker.evals_result_ or {}).items()
        for name, values in by_name.items()
    ]
    return html_block(f"{type(ranker).__name__}, fitted", settings, state, *curves[:_MOST_CURVES])
