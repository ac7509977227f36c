"""Shapley values of the features of one item: against another item of the query, or against a background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import seeded, whole_number
from rankpolicy.explanations.exact_values import linear_values, tree_values, trees_of
from rankpolicy.explanations.explained_items import dataset_to_explain, find_item, names_of, shown_features, shown_means
from rankpolicy.explanations.explanation import Explanation
from rankpolicy.explanations.item_value import ItemValue, check_of
from rankpolicy.explanations.shapley import ShapleyValues, enumerated_shapley, sampled_shapley
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

MOST_BACKGROUND_ROWS = 50
GROUP = "(protected group)"


def explain_item(
    ranker: Ranker,
    data: Any,
    *,
    qid: Any = None,
    group: Any = None,
    query: Any = None,
    item: Any = None,
    over: Any = None,
    of: str = "score",
    background: Any = None,
    num_samples: int = 100,
    random_state: int | None = 0,
) -> Explanation:
    """Why an item has its score or expected rank: what each feature adds, as Shapley values.

    In the game, an item has the features of a coalition from itself and all others from a reference; see ``Ranker.explain``.

    Parameters
    ----------
    ranker
        A fitted ranker that reads features.
    data
        The data to rank.
    qid, group
        The queries of a matrix or frame; None: all rows are one query.
    query
        The id of the query; may be left out where there is only one, or where ``item`` is a row number.
    item
        The item: a text is its id, a whole number its row as ``rank`` gives it. None: the item that is ranked first.
    over
        The item to compare it with, given in the same way. None compares with a background.
    of
        "score" or "expected_rank".
    background
        Items to compare with where ``over`` is None; by default those of ``data``. At most 50 of them are drawn.
    num_samples
        Orders of features to draw where values are estimated.
    random_state
        Seed of the draws; None draws new ones each time.
    """
    check_of(of)
    whole_number("num_samples", num_samples, at_least=2)
    generator = seeded(random_state)
    if over is not None and background is not None:
        raise RankPolicyError("an item is compared with over= (another item) or with background=, not with both.")
    data = dataset_to_explain(ranker, data, "data to explain", qid=qid, group=group)
    number, item_index = find_item(ranker, data, query, item)
    query_items, start = data[number : number + 1], int(data.query_offsets[number])
    other = None if over is None else find_item(ranker, data, data.query_ids[number], over)[1]
    if other == item_index:
        raise RankPolicyError("item and over are the same item; name two items of the query.")
    if other is None:
        rows = data if background is None else dataset_to_explain(ranker, background, "background")
        drawn = generator.permutation(rows.num_items)[:MOST_BACKGROUND_ROWS]
        references = rows.features_by_query[np.sort(drawn)]
    else:
        references = query_items.features_by_query[[other]]
    value = ItemValue(ranker, query_items, item_index, other, of=of)
    contrast = _Contrast(
        value=value,
        query=query_items,
        item=item_index,
        over=other,
        ranks_by_groups=ranker._ranks_by_groups,
        references=references,
    )
    attribution, base, method = _attributed(ranker, contrast, of, num_samples, generator)
    names, item_features = names_of(data), shown_features(query_items, item_index)
    reference_features = shown_means(data, references) if other is None else shown_features(query_items, other)
    if contrast.has_groups:
        assert query_items.groups_by_query is not None
        assert other is not None
        names, item_features, reference_features = (
            (*names, GROUP),
            (*item_features, str(query_items.groups_by_query[item_index])),
            (*reference_features, str(query_items.groups_by_query[other])),
        )
    return Explanation(
        names=names,
        values=attribution.values,
        standard_errors=np.sqrt(attribution.variances),
        item_features=item_features,
        reference_features=reference_features,
        of=of,
        value=float(value.actual[item_index]),
        base=base,
        query=str(data.query_ids[number]),
        item=_name(data, start + item_index),
        over=None if other is None else _name(data, start + other),
        method=method,
        ranker=ranker.name,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Contrast:
    """An item and what it is compared with."""

    value: ItemValue
    query: RankingDataset
    item: int
    over: int | None
    ranks_by_groups: bool
    references: NDArray[np.float32]  # (reference, feature); that of ``over`` where there is one

    @property
    def item_features(self) -> NDArray[np.float32]:
        return np.asarray(self.query.features_by_query[self.item])

    @property
    def has_groups(self) -> bool:
        """Whether the two items have different protected groups, by which the ranker may rank."""
        groups = self.query.groups_by_query
        by_groups = self.over is not None and groups is not None and self.ranks_by_groups
        return bool(by_groups and groups[self.item] != groups[self.over])  # type: ignore[index]

    @property
    def num_players(self) -> int:
        return len(self.item_features) + self.has_groups

    def players(self, reference: NDArray[np.float32]) -> NDArray[np.int64]:
        """What differs from a reference: features by number, then the protected group. All else adds nothing."""
        same = (self.item_features == reference) | (np.isnan(self.item_features) & np.isnan(reference))
        return np.flatnonzero(np.append(~same, True) if self.has_groups else ~same)

    def values_of(
        self, coalitions: NDArray[np.bool_], reference: NDArray[np.float32], players: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The value of the item for each coalition (coalition, player): its own features there, the reference's elsewhere.

        Against another item, the two exchange the features outside the coalition, so that no coalition is the other item's place in the
        same query.
        """
        has_own = np.ones((len(coalitions), self.num_players), bool)
        has_own[:, players] = coalitions
        features = has_own[:, : len(self.item_features)]
        item_features = np.where(features, self.item_features, reference)
        if self.over is None:
            return self.value(item_features)
        other_features = np.where(features, reference, self.item_features)
        return self.value(item_features, other_features, swaps_groups=~has_own[:, -1] if self.has_groups else None)


def _attributed(
    ranker: Ranker, contrast: _Contrast, of: str, num_samples: int, generator: np.random.Generator
) -> tuple[ShapleyValues, float, str]:
    """Values of the features, the value they start from, and how they were computed."""
    actual = contrast.value.actual
    full = float(actual[contrast.item])
    empties = contrast.value(contrast.references) if contrast.over is None else actual[[contrast.over]]
    # A reference that is the item itself has its value, without what rounding may add.
    differs = np.array([len(contrast.players(reference)) > 0 for reference in contrast.references])
    empties = np.where(differs | (contrast.over is not None), empties, full)
    base = float(empties.mean())
    exact = None if of != "score" or contrast.has_groups else _exact_values(ranker, contrast)
    if exact is not None:
        values, method = exact
        # Scores of networks are rounded to float32: what the rounding leaves is shared out by size.
        values = values + (full - base - values.sum()) * _shares(values)
        return ShapleyValues(values, np.zeros(len(values))), base, method
    values, variances, is_exact = np.zeros(contrast.num_players), np.zeros(contrast.num_players), True
    num_orders = max(2, -(-num_samples // len(empties)))
    for reference, empty in zip(contrast.references, empties.tolist(), strict=True):
        players = contrast.players(reference)
        if len(players) == 0:
            continue

        def game(
            coalitions: NDArray[np.bool_], reference: Any = reference, players: Any = players
        ) -> NDArray[np.float64]:
            return contrast.values_of(coalitions, reference, players)

        if 2 ** len(players) <= 2 * num_orders * len(players):
            shapley = enumerated_shapley(game, num_players=len(players), empty=empty, full=full)
        else:
            is_exact = False
            shapley = sampled_shapley(
                game,
                num_players=len(players),
                empty=empty,
                full=full,
                num_samples=num_orders,
                generator=generator,
            )
        values[players] += shapley.values / len(empties)
        variances[players] += shapley.variances / len(empties) ** 2
    return ShapleyValues(values, variances), base, "exact (all coalitions)" if is_exact else "sampled"


def _exact_values(ranker: Ranker, contrast: _Contrast) -> tuple[NDArray[np.float64], str] | None:
    """Values by the formula of the ranker's kind; None where there is none."""
    from rankpolicy.rankers.trees.boosting import TreeRanker

    if isinstance(ranker, TreeRanker):
        trees = trees_of(ranker._booster, num_trees=ranker.best_iteration_)
        return tree_values(trees, contrast.item_features, contrast.references), "exact (trees)"
    linear = linear_values(ranker, contrast.item_features, contrast.references)
    return None if linear is None else (linear, "exact (linear)")


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.abs(values).sum()
    return np.abs(values) / total if total else np.full(len(values), 1 / len(values))


def _name(data: RankingDataset, row_index: int) -> str:
    return (
        f"row {int(data.row_numbers()[row_index])}"
        if data.item_ids_by_query is None
        else str(data.item_ids_by_query[row_index])
    )
