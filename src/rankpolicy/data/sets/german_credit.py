"""German Credit as a ranking task: random sets of people, of whom creditworthy ones should be ranked first; groups by sex."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.sets.german_credit_file import People, read_people
from rankpolicy.declarations.arguments import checked_kinds, seeded
from rankpolicy.types import RankPolicyError

Draw = Literal["counts", "weights"]
OTHERS_PER_CREDITWORTHY = 4


@checked_kinds
def read_german_credit(
    path: str | Path,
    *,
    num_train: int = 500,
    num_test: int = 100,
    num_items: int = 10,
    test_share: float = 0.2,
    draw: Draw = "counts",
    random_state: int | None = 0,
) -> tuple[RankingDataset, RankingDataset]:
    """Training and test queries, each a random set of people (Singh & Joachims 2019, appendix B.2).

    People are split first, so that nobody is in both parts. Nobody is twice in a query. Labels are 1 for creditworthy people and 0 for
    others, groups 1 (female) and 0 (male). Numbers are standardised with mean and standard deviation of the training people, codes are
    one-hot. The default numbers of queries are those of the authors' code; the paper gives none.

    Parameters
    ----------
    path
        The file ``german.data``.
    num_train, num_test
        Number of training and test queries.
    num_items
        People per query.
    test_share
        Share of the people from whom the test queries are drawn.
    draw
        How to read the paper's "in the ratio 4:1" of people who are not creditworthy to people who are. "counts": of 10 people, 8 are not
        creditworthy and 2 are. "weights": a person who is not creditworthy is 4 times as likely to be drawn; as 7 of 10 people in the file
        are creditworthy, so are about 3.7 of 10 drawn. The authors' code does the latter, and their nDCG of 0.693 untrained fits it.
    random_state
        Seed; None draws a new one each time.
    """
    if draw not in ("counts", "weights"):
        raise RankPolicyError(f"draw must be 'counts' or 'weights'; got {draw!r}.")
    if min(num_train, num_test) < 1 or num_items < 1 or not 0 < test_share < 1:
        raise RankPolicyError(
            "num_train, num_test and num_items must be 1 or more and test_share between 0 and 1; "
            f"got {num_train}, {num_test}, {num_items} and {test_share}."
        )
    people = read_people(path)
    generator = seeded(random_state)
    shuffled = generator.permutation(len(people.labels))
    test, train = np.split(shuffled, [round(test_share * len(shuffled))])
    features = _standardized(people, train)
    draw_people = _by_counts if draw == "counts" else _by_weights

    def queries(pool: NDArray[np.int64], num_queries: int) -> RankingDataset:
        drawn = np.stack([draw_people(people, pool, num_items, generator) for _ in range(num_queries)])
        rows = drawn.ravel()
        return RankingDataset(
            features_by_query=features[rows],
            labels_by_query=people.labels[rows].astype(np.float32),
            query_offsets=np.arange(num_queries + 1) * num_items,
            query_ids=np.arange(num_queries).astype(str),
            source_rows_by_query=np.arange(len(rows)),
            item_ids_by_query=np.char.add("line ", (rows + 1).astype(str)),
            groups_by_query=people.groups[rows],
            feature_names=people.feature_names,
        )

    return queries(train, num_train), queries(test, num_test)


def _standardized(people: People, train: NDArray[np.int64]) -> NDArray[np.float32]:
    """Features with mean 0 and standard deviation 1 over the training people; codes stay 0 and 1."""
    features = people.features.copy()
    numbers = features[:, people.is_number]
    spread = numbers[train].std(0)
    features[:, people.is_number] = (numbers - numbers[train].mean(0)) / np.where(spread > 0, spread, 1)
    return features.astype(np.float32)


def _by_counts(
    people: People, pool: NDArray[np.int64], num_items: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    num_creditworthy = round(num_items / (1 + OTHERS_PER_CREDITWORTHY))
    is_creditworthy = people.labels[pool] == 1
    return generator.permutation(
        np.concatenate(
            [
                _some(pool[is_creditworthy], num_creditworthy, generator),
                _some(pool[~is_creditworthy], num_items - num_creditworthy, generator),
            ]
        )
    )


def _by_weights(
    people: People, pool: NDArray[np.int64], num_items: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    weights = np.where(people.labels[pool] == 1, 1.0, OTHERS_PER_CREDITWORTHY)
    return _some(pool, num_items, generator, weights=weights / weights.sum())


def _some(
    pool: NDArray[np.int64],
    count: int,
    generator: np.random.Generator,
    *,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    if count > len(pool):
        raise RankPolicyError(
            f"a query needs {count} people of a kind and there are {len(pool)}. Lower num_items, or change test_share."
        )
    return generator.choice(pool, size=count, replace=False, p=weights)
