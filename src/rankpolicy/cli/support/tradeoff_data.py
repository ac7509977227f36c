"""The data of ``rankpolicy tradeoff``, with the protected groups of each seed, and the aim of fairness that its options name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.cli.support.options import Columns, MeasuredBias, read_alike
from rankpolicy.cli.support.output import facts_of_datasets
from rankpolicy.declarations.setting_texts import parse_setting
from rankpolicy.declarations.settings import setting_names
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.data import RankingDataset
    from rankpolicy.fairness import FairnessAim


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

    def name_groups_in(self, settings: dict[str, dict[str, Any]]) -> None:
        """Replace the text of a protected group in the settings of methods by the group, in the type that the data have."""
        import numpy as np

        groups = self.trains[0].groups_by_query
        by_text = {} if groups is None else {str(group): group for group in np.unique(groups).tolist()}
        for method_settings in settings.values():
            if (text := method_settings.get("protected_group")) is not None:
                method_settings["protected_group"] = by_text.get(str(text), text)

    def facts(self) -> dict[str, dict[str, Any]]:
        """The data as a run record describes them."""
        datasets = {
            f"seed {seed} {role}": dataset
            for seed, train, test in zip(self.seeds, self.trains, self.tests, strict=True)
            for role, dataset in (("train", train), ("test", test))
        }
        return facts_of_datasets(self.name, datasets)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupColumns(Columns):
    """The columns of a file, or the feature whose values are the protected groups.

    Parameters
    ----------
    protected_feature : NUMBER|NAME
        Instead of --protected: the feature whose values are the groups, by its number from 1 or its name.
    """

    protected_feature: str | None = None


def read_tradeoff_data(
    data: str,
    test: Path | None,
    *,
    columns: GroupColumns,
    fairness: str,
    test_fraction: float,
    seeds: Sequence[int],
) -> TradeoffData:
    """The data of each seed.

    The paper's synthetic data and German Credit are drawn again for each seed; files are split again unless there is test data.
    """
    if columns.protected is not None and columns.protected_feature is not None:
        raise RankPolicyError("give --protected COLUMN or --protected-feature NUMBER, not both.")
    is_german = Path(data).name == GERMAN_CREDIT or (Path(data) / GERMAN_CREDIT).is_file()
    if data == SYNTHETIC or is_german:
        of_files = {
            "--test": test, "--protected": columns.protected, "--protected-feature": columns.protected_feature,
        }  # fmt: skip
        for option, value in of_files.items():
            if value is not None:
                raise RankPolicyError(f"{data} brings its own test data and groups: leave {option} out.")
        if columns.are_named:
            raise RankPolicyError(f"{data} has no columns to name: leave --qid, --label and --ignore out.")
        pairs = [_synthetic(seed) if data == SYNTHETIC else _german_credit(Path(data), seed) for seed in seeds]
    else:
        pairs = _of_files(Path(data), test, columns, test_fraction=test_fraction, seeds=seeds)
        if fairness == "group" and pairs[0][0].groups_by_query is None:
            raise RankPolicyError(
                f"--fairness group needs the protected group of each item, and {data} has no column 'group': name another with "
                "--protected COLUMN, take the values of a feature with --protected-feature NUMBER, or measure --fairness individual."
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
    data: Path, test: Path | None, columns: GroupColumns, *, test_fraction: float, seeds: Sequence[int]
) -> list[tuple[RankingDataset, RankingDataset]]:
    from rankpolicy.data import split_queries

    if test is not None:
        datasets = read_alike({"train": data, "test": test}, lambda path, **size: _read(path, columns, **size))
        return [(datasets["train"], datasets["test"])] * len(seeds)
    if not 0 < test_fraction < 1:
        raise RankPolicyError(f"--test-fraction must be between 0 and 1; got {test_fraction:g}.")
    train = _read(data, columns)
    splits = [split_queries(train, (1 - test_fraction, test_fraction), random_state=seed) for seed in seeds]
    return [(learned, tested) for learned, tested in splits]


def _read(path: Path, columns: GroupColumns, **arguments: Any) -> RankingDataset:
    if columns.protected is not None and not {".csv", ".parquet"} & set(path.suffixes[-2:]):
        raise RankPolicyError(
            f"--protected {columns.protected} names a column, and {path} has none: use --protected-feature NUMBER, or a .csv or .parquet "
            "file."
        )
    dataset = columns.read(path, **arguments)
    return (
        dataset if columns.protected_feature is None else _grouped_by_feature(dataset, columns.protected_feature, path)
    )


def _grouped_by_feature(dataset: RankingDataset, feature: str, path: Path) -> RankingDataset:
    import numpy as np

    names = dataset.feature_names or ()
    if feature in names:
        column = names.index(feature)
    elif feature.isdecimal() and 1 <= int(feature) <= dataset.num_features:
        column = int(feature) - 1
    else:
        alternatives = f", or one of {', '.join(names[:10])}" if names else ""
        raise RankPolicyError(
            f"--protected-feature {feature} must be a feature of {path}, a number from 1 to {dataset.num_features}{alternatives}."
        )
    values = dataset.features_by_query[:, column]
    num_values = len(np.unique(values))
    if num_values > MOST_GROUPS:
        raise RankPolicyError(
            f"--protected-feature {feature} must have at most {MOST_GROUPS} values, one per group; it has {num_values}."
        )
    return replace(dataset, groups_by_query=values.astype(np.int64) if (values == np.round(values)).all() else values)


@dataclass(frozen=True, slots=True, kw_only=True)
class AimOptions(MeasuredBias):
    """The options that say which disparity is measured and lowered.

    Parameters
    ----------
    fairness : group|individual
        Disparity between groups, or between single items.
    merit : identity|exp2|binary|log1p|sqrt|square
        The merit of an item as a function of its label.
    rank_weights : log2|inverse|geometric|NUMBERS
        How likely each rank is looked at, the weight of exposure: a formula, or one number per rank, such as 1,0.5,0.3; or measured,
        --propensities.
    impact
        Compare expected clicks, exposure times label, instead of exposure.
    amortized
        Average over queries before groups are compared.
    cross_multiplied
        Compare groups without division, so that groups may have no merit.
    """

    fairness: str = "group"
    merit: str = "identity"
    rank_weights: str = "log2"
    impact: bool = False
    amortized: bool = False
    cross_multiplied: bool = False

    def value(self) -> FairnessAim:
        """The aim that the options describe; a flag that is on and that the aim does not have is refused.

        >>> AimOptions(fairness="individual", merit="exp2", rank_weights="1,0.5", impact=True).value()
        IndividualExposure(merit='exp2', rank_weights=(1.0, 0.5), impact=True)
        """
        from rankpolicy.fairness import AIMS

        aim, measured = AIMS.named(self.fairness), self.read()
        if measured is not None and self.rank_weights != "log2":
            raise RankPolicyError(
                "--rank-weights and --propensities both say how likely ranks are looked at: give one of them."
            )
        weights: Any = parse_setting(aim, "rank_weights", self.rank_weights) if measured is None else measured
        flags = [name for name in ("impact", "amortized", "cross_multiplied") if getattr(self, name)]
        for name in flags:
            if name not in setting_names(aim):
                raise RankPolicyError(
                    f"--{name.replace('_', '-')} compares groups: it needs --fairness group; got {self.fairness}."
                )
        return aim(merit=self.merit, rank_weights=weights, **dict.fromkeys(flags, True))
