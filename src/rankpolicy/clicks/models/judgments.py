"""Judgments of a click model, in the form that OpenSearch's search relevance workbench imports."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.models.click_model import ClickModel
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.types import RankPolicyError


@checked_kinds
def judgments_of(
    model: ClickModel, *, clicked_in: ClickLog | None = None, name: str | None = None, max_rating: float = 100.0
) -> dict[str, Any]:
    """A rating of every (query, item) pair that the model was fitted on, as a document of the type IMPORT_JUDGMENT.

    rating = max_rating x relevance, where relevance is a probability; the items of a query are in the order of their ratings.

    Parameters
    ----------
    model
        A model that distinguishes items: any but gctr and rctr.
    clicked_in
        A log: items without a click in it are rated 0, as COEC rates them. A model's relevance of an item that nobody clicked is mostly its
        prior, which puts items that were hardly seen above those that were seen and left. None: the model's relevance of all items.
    name
        Name of the list of judgments; None: the name of the model.
    max_rating
        The rating of an item that is certainly relevant.

    >>> from rankpolicy.clicks import fit_click_model, log_from_lists
    >>> log = log_from_lists(["red shoes"] * 4, [["x", "y"]] * 4, [[1, 0], [0, 1], [0, 1], [0, 1]])
    >>> judgments_of(fit_click_model("dctr", log, prior=None))["judgmentRatings"]
    [{'query': 'red shoes', 'ratings': [{'docId': 'y', 'rating': '75.000'}, {'docId': 'x', 'rating': '25.000'}]}]
    """
    check_distinguishes_items(type(model))
    if not 0 < max_rating < np.inf:
        raise RankPolicyError(f"max_rating must be a number above 0; got {max_rating}.")
    ratings, pairs = max_rating * model.relevance(), model.pairs
    if clicked_in is not None:
        view = pairs.view(clicked_in)
        ratings = np.where(view.sum_by_pair(view.weights * view.clicks)[: len(pairs)] > 0, ratings, 0.0)
    by_query: dict[str, list[tuple[float, str]]] = {}
    for query, item, rating in zip(pairs.queries, pairs.items, ratings.tolist(), strict=True):
        by_query.setdefault(pairs.query_names[query], []).append((-rating, pairs.item_names[item]))
    return {
        "name": name or f"Clicks, {model.name}",
        "description": f"Estimated from clicks by the {model.title} model of rankpolicy",
        "type": "IMPORT_JUDGMENT",
        "judgmentRatings": [
            {
                "query": query,
                "ratings": [{"docId": item, "rating": f"{-negated:.3f}"} for negated, item in sorted(rated)],
            }
            for query, rated in by_query.items()
        ],
    }


def check_distinguishes_items(kind: type[ClickModel]) -> None:
    """Refuse a click model that gives every item the same relevance."""
    if "attraction" not in kind.axes:
        raise RankPolicyError(f"judgments need a click model that distinguishes items; {kind.name} does not. Take pbm.")
