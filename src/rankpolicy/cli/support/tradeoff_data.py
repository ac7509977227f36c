"""The data of ``rankpolicy tradeoff``: training and test queries of each seed, with their protected groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankpolicy.cli.support.options import columns_from
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.data import RankingDataset

SYNTHETIC = "synthetic"
GERMAN_CREDIT = "german.data"
MOST_GROUPS = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TradeoffData:
    """One dataset per seed to learn from, and one to measure on."""

    name: str
    seeds: tuple[int, ...]
    trains: tuple[RankingDataset, ...]
    tests: tuple[RankingDataset, ...]

    def group_named(self, text: Any) -> Any:
        """The group that is written like this, in the type that the data have; the text itself where there is none."""
        groups = self.trains[0].groups_by_query
        known = {} if groups is None else {str(group): group for group in np.unique(groups).tolist()}
        return known.get(str(text), text)

    def facts(self) -> dict[str, dict[str, Any]]:
        """The data as a run record describes them."""
        from rankpolicy.data.fingerprints import fingerprint

        parts = {
            f"seed {seed} {role}": dataset
            for seed, train, test in zip(self.seeds, self.trains, self.tests, strict=True)
            for role, dataset in (("train", train), ("test", test))
        }
        return {
            role: {"path": self.name, "sha256": fingerprint(part), "queries": part.num_queries, "items": part.num_items}
            for role, part in parts.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a file, as ``read_dataset`` takes them, and the feature whose values are the protected groups, if there is one."""

    by_role: dict[str, Any]
    group_feature: str | None

    @property
    def are_named(self) -> bool:
        """Whether an option names a column: LETOR text has none."""
        return self.by_role != columns_from("qid", "label", None, None)


def read_tradeoff_data(
    data: str,
    test: Path | None,
    *,
    columns: dict[str, Any],
    group_feature: str | None,
    fairness: str,
    test_fraction: float,
    seeds: Sequence[int],
) -> TradeoffData:
    """The data of each seed.

    The paper's synthetic data and German Credit are drawn again for each seed; files are split again unless there is test data.
    """
    group_column = columns["protected"]
    if group_column is not None and group_feature is not None:
        raise RankPolicyError("give --group COLUMN or --group-feature NUMBER, not both.")
    chosen = Columns(by_role=columns, group_feature=group_feature)
    is_german = Path(data).name == GERMAN_CREDIT or (Path(data) / GERMAN_CREDIT).is_file()
    if data == SYNTHETIC or is_german:
        given = {"--test": test, "--group": group_column, "--group-feature": group_feature}
        for option, value in given.items():
            if value is not None:
                raise RankPolicyError(f"{data} brings its own test data and groups: leave {option} out.")
        if chosen.are_named:
            raise RankPolicyError(f"{data} has no columns to name: leave --qid, --label and --ignore out.")
        pairs = [_synthetic(seed) if data == SYNTHETIC else _german_credit(Path(data), seed) for seed in seeds]
    else:
        pairs = _of_files(Path(data), test, chosen, test_fraction=test_fraction, seeds=seeds)
        if fairness == "group" and pairs[0][0].groups_by_query is None:
            raise RankPolicyError(
                f"--fairness group needs the protected group of each item, and {data} has no column 'group': name another with "
                "--group COLUMN, take the values of a feature with --group-feature NUMBER, or measure --fairness individual."
            )
    trains, tests = zip(*pairs, strict=True)
    return TradeoffData(name=data, seeds=tuple(seeds), trains=trains, tests=tests)


def _synthetic(seed: int) -> tuple[RankingDataset, RankingDataset]:
    from rankpolicy.data import make_fair_synthetic

    return make_fair_synthetic(random_state=2 * seed), make_fair_synthetic(random_state=2 * seed + 1)


def _german_credit(path: Path, seed: int) -> tuple[RankingDataset, RankingDataset]:
    """Drawn by weights, as the authors' code does."""
    from rankpolicy.data import read_german_credit

    file = path / GERMAN_CREDIT if path.is_dir() else path
    return read_german_credit(file, draw="weights", random_state=seed)


def _of_files(
    data: Path, test: Path | None, columns: Columns, *, test_fraction: float, seeds: Sequence[int]
) -> list[tuple[RankingDataset, RankingDataset]]:
    from rankpolicy.data import split_queries

    train = _read(data, columns)
    if test is not None:
        held_out = _read(test, columns)
        width = max(train.num_features, held_out.num_features)
        # A sparse file may leave out the last features.
        train, held_out = (
            part if part.num_features == width else _read(path, columns, num_features=width)
            for path, part in ((data, train), (test, held_out))
        )
        return [(train, held_out)] * len(seeds)
    if not 0 < test_fraction < 1:
        raise RankPolicyError(f"--test-fraction must be between 0 and 1; got {test_fraction:g}.")
    splits = [split_queries(train, (1 - test_fraction, test_fraction), random_state=seed) for seed in seeds]
    return [(learned, tested) for learned, tested in splits]


def _read(path: Path, columns: Columns, *, num_features: int | None = None) -> RankingDataset:
    from rankpolicy.data import read_dataset

    column = columns.by_role["protected"]
    if column is not None and not {".csv", ".parquet"} & set(path.suffixes[-2:]):
        raise RankPolicyError(
            f"--group {column} names a column, and {path} has none: use --group-feature NUMBER, or a .csv or .parquet file."
        )
    dataset = read_dataset(path, num_features=num_features, **columns.by_role)
    return dataset if columns.group_feature is None else _grouped_by_feature(dataset, columns.group_feature, path)


def _grouped_by_feature(dataset: RankingDataset, feature: str, path: Path) -> RankingDataset:
    names = dataset.feature_names or ()
    if feature in names:
        column = names.index(feature)
    elif feature.isdecimal() and 1 <= int(feature) <= dataset.num_features:
        column = int(feature) - 1
    else:
        known = f", or one of {', '.join(names[:10])}" if names else ""
        raise RankPolicyError(
            f"--group-feature {feature} must be a feature of {path}, a number from 1 to {dataset.num_features}{known}."
        )
    values = dataset.features_by_query[:, column]
    num_values = len(np.unique(values))
    if num_values > MOST_GROUPS:
        raise RankPolicyError(
            f"--group-feature {feature} must have at most {MOST_GROUPS} values, one per group; it has {num_values}."
        )
    return replace(dataset, groups_by_query=values.astype(np.int64) if (values == np.round(values)).all() else values)
