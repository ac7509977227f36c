"""Ranking data drawn from a family: how many queries, items and features, how many of them matter, and how."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds, seeded, whole_number
from rankpolicy.types import RankPolicyError, unknown_name

QUERY_LEVEL = 0.5  # standard deviation of how relevant all items of a query are, where that of the signal is 1
NEXT_GRADE = 0.5  # of the items with at least one grade, the share with at least the next
NUM_STEPS = 4  # levels of a feature that acts by steps
_MOST_CELLS = 2 * 10**9
_MOST_NOISE, _MOST_SHIFT = 1e6, 10.0  # the exponential of a larger shift may be infinite in float32


@checked_kinds
def make_ranking(
    num_queries: int = 500,
    *,
    items_per_query: int | tuple[int, int] = (5, 40),
    num_features: int = 30,
    num_informative: int = 9,
    effects: Literal["additive", "interacting"] = "interacting",
    noise: float = 0.75,
    num_grades: int = 5,
    relevant_share: float = 0.3,
    query_shift: float = 0.0,
    random_state: int | None = 0,
) -> RankingDataset:
    """Draw ranking data whose difficulty is known: size, share of informative features, additive or not, noise, grades.

    Features are standard normal; of every three, the last is observed as its exponential, long-tailed like a count. The first
    ``num_informative`` decide relevance, the others have no effect:

        relevance = signal + noise * e_item + 0.5 * e_query,    e standard normal, the signal of mean 0 and standard deviation 1,

    and labels are grades of relevance: a share ``relevant_share`` of all items has grade 1 or higher, half of these 2 or higher, and so on.
    With effects="additive" the signal is a sum over features of w x and w tanh(2 x) in turn. With "interacting" it is a sum of
    thresholds w sign(x - t), products w x x' with the next informative feature, and steps w q, where q is -1.5, -0.5, 0.5 or 1.5 by the
    quarter of all values that x is in, in turn. The weights w, from 0.5 to 1.5 with either sign, and thresholds t, from -1 to 1, are
    drawn too: data of another ``random_state`` is another task. For training and test data of one task, draw once and split.

    Parameters
    ----------
    num_queries
        Number of queries.
    items_per_query
        Number of items of each query, or the lowest and the highest number, between which each is drawn uniformly.
    num_features
        Number of features.
    num_informative
        How many of them, the first ones, decide relevance.
    effects
        How they do: "additive", each on its own and monotonically, or "interacting", by thresholds, products and steps.
    noise
        Standard deviation of the noise of an item, where that of the signal is 1. With 0 labels follow from features and query.
    num_grades
        Number of grades: labels are 0 to ``num_grades`` - 1. 2 makes them binary.
    relevant_share
        Share of all items with a label above 0.
    query_shift
        Standard deviation of a shift that all items of a query have in a feature, a different one for each feature. Above 0, relevance
        depends on how a feature differs from the other items of the query (for long-tailed features, by which factor).
    random_state
        Seed of the task and its data; None draws a new one each time.

    >>> make_ranking(100, items_per_query=20)
    RankingDataset(queries=100, items=2000, features=30, labels 0..4)
    >>> sparse = make_ranking(1200, items_per_query=40, num_features=136, num_informative=9)
    >>> train, valid, test = sparse[:800], sparse[800:1000], sparse[1000:]
    >>> make_ranking(50, num_features=5, num_informative=5, effects="additive", num_grades=2)
    RankingDataset(queries=50, items=1053, features=5, labels 0..1)
    """
    fewest, most = _bounds(items_per_query)
    whole_number("num_queries", num_queries, at_least=1, at_most=10**9)
    whole_number("num_features", num_features, at_least=1, at_most=1_000_000)
    whole_number("num_informative", num_informative, at_least=1)
    whole_number("num_grades", num_grades, at_least=2, at_most=32)
    if num_informative > num_features:
        raise RankPolicyError(
            f"num_informative must be at most num_features; got {num_informative} of {num_features} features."
        )
    if not 0 < relevant_share < 1:
        raise RankPolicyError(f"relevant_share must be above 0 and below 1; got {relevant_share}.")
    if effects not in _SIGNALS:
        raise RankPolicyError(unknown_name("kind of effects", effects, _SIGNALS))
    for name, value, highest in (("noise", noise, _MOST_NOISE), ("query_shift", query_shift, _MOST_SHIFT)):
        if not 0 <= value <= highest:
            raise RankPolicyError(f"{name} must be between 0 and {highest:g}; got {value}.")
    if num_queries * most * num_features > _MOST_CELLS:
        raise RankPolicyError(
            f"{num_queries} queries of up to {most} items with {num_features} features are more than {_MOST_CELLS} numbers; ask for fewer."
        )
    generator = seeded(random_state)
    sizes = generator.integers(fewest, most, size=num_queries, endpoint=True)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    query = np.repeat(np.arange(num_queries), sizes)
    features = generator.standard_normal((len(query), num_features), dtype=np.float32)
    signal = _SIGNALS[effects](features[:, :num_informative].astype(np.float64), generator)
    relevance = (signal - signal.mean()) / (signal.std() or 1.0)
    relevance += QUERY_LEVEL * generator.standard_normal(num_queries)[query]
    relevance += noise * generator.standard_normal(len(query))
    share_from_grade = relevant_share * NEXT_GRADE ** np.arange(num_grades - 1)
    labels = np.searchsorted(np.quantile(relevance, 1 - share_from_grade), relevance)
    if query_shift:
        features += (query_shift * generator.standard_normal((num_queries, num_features), dtype=np.float32))[query]
    features[:, 2::3] = np.exp(features[:, 2::3])
    return RankingDataset(
        features_by_query=features,
        labels_by_query=labels.astype(np.float32),
        query_offsets=offsets,
        query_ids=np.arange(num_queries).astype(str),
        source_rows_by_query=np.arange(len(query)),
    )


def additive_signal(features: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.float64]:
    """A sum of monotone functions of one feature each."""
    shaped = features.copy()
    shaped[:, 1::2] = np.tanh(2 * features[:, 1::2])
    return np.asarray(shaped @ _weights(features.shape[1], generator))


def interacting_signal(features: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.float64]:
    """A sum of thresholds, products and steps, in turn."""
    terms = np.empty_like(features)
    num_informative = features.shape[1]
    for feature in range(num_informative):
        values = features[:, feature]
        if feature % 3 == 0:
            terms[:, feature] = np.sign(values - generator.uniform(-1, 1))
        elif feature % 3 == 1:
            terms[:, feature] = values * features[:, (feature + 1) % num_informative]
        else:
            edges = np.quantile(values, np.arange(1, NUM_STEPS) / NUM_STEPS)
            terms[:, feature] = np.searchsorted(edges, values) - (NUM_STEPS - 1) / 2
    return np.asarray(terms @ _weights(num_informative, generator))


def _weights(count: int, generator: np.random.Generator) -> NDArray[np.float64]:
    return np.asarray(generator.uniform(0.5, 1.5, count) * generator.choice([-1.0, 1.0], count))


_SIGNALS = {"additive": additive_signal, "interacting": interacting_signal}


def _bounds(items_per_query: int | tuple[int, int]) -> tuple[int, int]:
    """The lowest and the highest number of items of a query."""
    pair = items_per_query if isinstance(items_per_query, tuple | list) else (items_per_query, items_per_query)
    if len(pair) != 2:
        raise RankPolicyError(
            f"items_per_query must be a whole number or two, (fewest, most); got {items_per_query!r:.80}."
        )
    fewest, most = (whole_number("items_per_query", bound, at_least=1, at_most=1_000_000) for bound in pair)
    if fewest > most:
        raise RankPolicyError(
            f"items_per_query must be (fewest, most) with fewest <= most; got {items_per_query!r:.80}."
        )
    return fewest, most
