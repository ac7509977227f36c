"""German Credit as a ranking task: random sets of people, of whom creditworthy ones should be ranked first; groups by sex.

The file ``german.data`` of the Statlog German Credit set (UCI; Hofmann 1994).

It has 1000 lines of 20 attributes and a class, which is 1 for creditworthy people and 2 for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds, seeded
from rankpolicy.display import frozen_value
from rankpolicy.types import RankPolicyError

# The codes of each attribute, as documented with the data; None for a number.
ATTRIBUTES: dict[str, tuple[str, ...] | None] = {
    "status": ("A11", "A12", "A13", "A14"),
    "duration": None,
    "credit_history": ("A30", "A31", "A32", "A33", "A34"),
    "purpose": ("A40", "A41", "A42", "A43", "A44", "A45", "A46", "A47", "A48", "A49", "A410"),
    "amount": None,
    "savings": ("A61", "A62", "A63", "A64", "A65"),
    "employment": ("A71", "A72", "A73", "A74", "A75"),
    "rate": None,
    "status_sex": ("A91", "A92", "A93", "A94", "A95"),
    "debtors": ("A101", "A102", "A103"),
    "residence": None,
    "property": ("A121", "A122", "A123", "A124"),
    "age": None,
    "other_plans": ("A141", "A142", "A143"),
    "housing": ("A151", "A152", "A153"),
    "num_credits": None,
    "job": ("A171", "A172", "A173", "A174"),
    "num_liable": None,
    "telephone": ("A191", "A192"),
    "foreign": ("A201", "A202"),
}
FEMALE = ("A92", "A95")
CREDITWORTHY = {"1": 1.0, "2": 0.0}


@frozen_value(kw_only=True)
class People:
    """The people of german.data, in the order of the file."""

    features: NDArray[np.float64]  # Features (person, feature): numbers as they are, codes one-hot
    is_number: NDArray[np.bool_]  # Whether each feature is a number (feature,)
    labels: NDArray[np.float64]  # 1 for creditworthy people, 0 for others (person,)
    groups: NDArray[np.int64]  # 1 for women, 0 for men (person,)
    feature_names: tuple[str, ...]  # Name of each feature


def read_people(path: str | Path) -> People:
    """Read ``german.data``; a line without 20 attributes and a class is an error that names the line."""
    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RankPolicyError(
            f"{path} must be the text file german.data of the UCI German Credit set: {error}."
        ) from None
    rows, labels, groups = [], [], []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                features, label, is_female = parse_person(line.split())
            except RankPolicyError as error:
                raise RankPolicyError(f"{path}, line {number}: {error}") from None
            rows.append(features)
            labels.append(label)
            groups.append(is_female)
    if not rows:
        raise RankPolicyError(f"{path} must hold one person per line; it is empty.")
    columns = [(name, code) for name, codes in ATTRIBUTES.items() for code in codes or ("",)]
    return People(
        features=np.array(rows),
        is_number=np.array([not code for _, code in columns]),
        labels=np.array(labels),
        groups=np.array(groups, dtype=np.int64),
        feature_names=tuple(f"{name}={code}" if code else name for name, code in columns),
    )


def parse_person(fields: Sequence[str]) -> tuple[list[float], float, bool]:
    """Features, label and whether the person is female."""
    if len(fields) != len(ATTRIBUTES) + 1:
        raise RankPolicyError(f"expected 20 attributes and a class, 21 fields; got {len(fields)}.")
    features: list[float] = []
    for field, (name, codes) in zip(fields[:-1], ATTRIBUTES.items(), strict=True):
        if codes is None:
            features.append(_number(name, field))
        elif field in codes:
            features.extend(float(field == code) for code in codes)
        else:
            raise RankPolicyError(f"{name} must be one of {', '.join(codes)}; got {field!r}.")
    if fields[-1] not in CREDITWORTHY:
        raise RankPolicyError(f"the class must be 1 (creditworthy) or 2 (not); got {fields[-1]!r}.")
    return features, CREDITWORTHY[fields[-1]], fields[list(ATTRIBUTES).index("status_sex")] in FEMALE


def _number(name: str, field: str) -> float:
    if not field.isdecimal():
        raise RankPolicyError(f"{name} must be a whole number; got {field!r}.")
    return float(field)


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
