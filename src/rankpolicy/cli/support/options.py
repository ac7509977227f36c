"""Options that several verbs share, each declared once; options that belong together are one value (verb_parameters.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from rankpolicy.types import Conventions, RankPolicyError, check_name

if TYPE_CHECKING:
    from rankpolicy.clicks import ClickLog, PositionBias
    from rankpolicy.data import RankingDataset
    from rankpolicy.executors import Executor
    from rankpolicy.rankers import Ranker

# What options were called before; an old name answers with the new one.
RENAMED = {
    "--group": "--protected",
    "--groups": "--protected",
    "--group-feature": "--protected-feature",
    "--jobs": "--executor, as in --executor processes:4",
    "--workers": "--executor, as in --executor processes:2",
}

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
NotRandom = Annotated[int, typer.Option("--seed", hidden=True, help="Accepted by every verb; nothing here is random.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting, such as epochs=50; may be repeated. Lists: model.hidden=64,64. All settings: rankpolicy methods NAME.",
    ),
]
Variant = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="NAME=METHOD",
        help="Run METHOD once more under a name of your own, with settings of its own: --variant wide=pg-rank "
        "--set wide.epochs=50. May be repeated.",
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model written by 'rankpolicy train'.", show_default=False)
]
Metrics = Annotated[
    str, typer.Option("--metrics", help="Metrics, comma-separated: ndcg@10, map, err@10 or a mix such as mean(ap, rr).")
]
PerQuery = Annotated[
    Path | None, typer.Option(help="Write the metrics of every query, and of every method: .csv or .parquet.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of tables of features.

    Parameters
    ----------
    qid : COLUMN
        Column of query ids, for .csv and .parquet of features.
    label : COLUMN
        Column of labels, for .csv and .parquet of features.
    protected : COLUMN
        Column of the protected group of each item; by default 'group' if there is one.
    ignore : COLUMNS
        Columns of .csv and .parquet to leave out, separated by commas.
    """

    qid: str = "qid"
    label: str = "label"
    protected: str | None = None
    ignore: list[str] | None = None

    @property
    def are_named(self) -> bool:
        """Whether an option names a column: LETOR text has none."""
        return (self.qid, self.label, self.protected, self.ignore or None) != ("qid", "label", None, None)

    def arguments(self) -> dict[str, Any]:
        """The options as ``read_dataset`` takes them."""
        ignored = [name.strip() for names in self.ignore or () for name in names.split(",") if name.strip()]
        return {"qid": self.qid, "label": self.label, "protected": self.protected, "ignore": ignored}

    def read(self, data: Path, **arguments: Any) -> RankingDataset:
        """The dataset in a file."""
        from rankpolicy.data import read_dataset

        return read_dataset(data, **self.arguments(), **arguments)

    def read_for(self, ranker: Ranker, data: Path, **arguments: Any) -> RankingDataset:
        """The dataset in a file, with the features that a ranker was fitted on."""
        return self.read(data, num_features=ranker.num_features_, feature_names=ranker.feature_names_, **arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsOnDisk(Columns):
    """The columns of tables of features, and whether these stay on disk.

    Parameters
    ----------
    on_disk
        Leave the features of LETOR and Parquet data on disk, for data bigger than memory; --data may be a folder of files.
    """

    on_disk: bool = False

    def arguments(self) -> dict[str, Any]:
        return Columns.arguments(self) | {"on_disk": self.on_disk}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricConventions:
    """What the definition of a metric leaves open: the fields of ``rp.Conventions``.

    Parameters
    ----------
    gain : exp2|linear
        Gain of a label: 2^label - 1, or the label.
    empty : 0|1|skip
        Value of a query without relevant items; skip leaves it out.
    relevant_from
        Lowest label that binary metrics (map, mrr, p, recall) count.
    max_label
        Highest label of the scale, for err.
    ties : expected|worst|item_id
        Items with equal scores: mean over their orders, the worst order, or by item id as trec_eval.
    """

    gain: str = "exp2"
    empty: str = "0"
    relevant_from: float = 1.0
    max_label: float = 4.0
    ties: str = "expected"

    def value(self) -> Conventions:
        """The conventions that the options describe."""
        values = {}
        for name, kind in get_type_hints(Conventions).items():
            values[name] = text = getattr(self, name)
            choices = {str(choice): choice for choice in get_args(kind)}  # those of a Literal
            if choices and text not in choices:
                *first, last = choices
                raise RankPolicyError(f"--{name} must be {', '.join(first)} or {last}; got {text!r}.")
            values[name] = choices.get(text, text)
        return Conventions(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelWork:
    """Where the tasks of a verb run.

    Parameters
    ----------
    executor : NAME[:N]
        Where tasks run: serial, threads, processes or ray, a cluster; and how many at a time, as in processes:4, by default one per
        core. Results do not depend on it.
    address : HOST:PORT
        A running Ray cluster for --executor ray; by default Ray is started on this machine alone.
    """

    executor: str | None = None
    address: str | None = None

    def name_and_size(self) -> tuple[str | None, int | None]:
        """The name of an executor and the number of tasks at a time, if they are given."""
        from rankpolicy.executors import EXECUTORS

        if self.executor is None:
            name, size = None, ""
        else:
            name, _, size = self.executor.partition(":")
            check_name("--executor", name, EXECUTORS)
            if (size and not (size.isdecimal() and int(size))) or self.executor.endswith(":"):
                raise RankPolicyError(f"--executor must be a name or NAME:N, as in processes:4; got {self.executor!r}.")
        if self.address is not None and name != "ray":
            raise RankPolicyError("--address is that of a Ray cluster: it must come with --executor ray.")
        return name, int(size) if size else None

    @contextmanager
    def opened(self, default: str | None = None) -> Iterator[Executor | None]:
        """The executor that the options describe, closed at the end; None where there is none and no default."""
        from rankpolicy.executors import make_executor

        name, size = self.name_and_size()
        chosen = name or default
        if chosen is None:
            yield None
            return
        with make_executor(chosen, jobs=size, address=self.address) as executor:
            yield executor


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBias:
    """A position bias in a file.

    Parameters
    ----------
    propensities : FILE
        bias.json of 'rankpolicy clicks bias': how likely users examine each rank, as measured.
    bias_method : METHOD
        The method to take where --propensities holds several.
    """

    propensities: Path | None = None
    bias_method: str | None = None

    def read(self) -> PositionBias | None:
        """The position bias in the file of ``--propensities``, by the method of ``--bias-method`` where it holds several."""
        if self.propensities is not None:
            from rankpolicy.clicks import read_position_bias

            return read_position_bias(self.propensities, method=self.bias_method)
        if self.bias_method is not None:
            raise RankPolicyError("--bias-method names a method in a bias.json: it needs --propensities FILE.")
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """How a click log is read.

    Parameters
    ----------
    format : yandex|ubi|rows|sessions|counts|click-table, default recognised by its name and columns
        Format of the log.
    columns : NAME=COLUMN,...
        What columns of the log are called: item=shown_item,rank=pos. Names: session, query, item, position, clicked; items, clicks;
        impressions.
    lenient
        Skip and count malformed rows.
    """

    format: str | None = None
    columns: str | None = None
    lenient: bool = False

    def read(self, log: Path) -> ClickLog:
        """The click log in a file."""
        from rankpolicy.clicks import read_click_log

        pairs = filter(None, (self.columns or "").split(","))
        names = dict(pairs_in(pairs, "--columns", "names and columns such as item=shown_item,rank=pos"))
        return read_click_log(log, format=self.format, columns=names, lenient=self.lenient)


Log = Annotated[
    Path,
    typer.Argument(
        metavar="LOG",
        help="Yandex rows (.gz, .bz2, .zst), UBI (.ndjson), .parquet or .csv, click tables too; or a folder of .parquet files.",
        show_default=False,
    ),
]


def load_ranker(path: Path) -> Ranker:
    """The ranker in a file; a file that holds something else, such as a click model, is refused."""
    from rankpolicy.loading import load

    loaded = load(path)
    from rankpolicy.rankers import Ranker  # not before: a file that is missing is reported without loading torch

    if not isinstance(loaded, Ranker):
        raise RankPolicyError(
            f"{path} must hold a ranker, as 'rankpolicy train' writes it; it holds a {type(loaded).__name__}."
        )
    return loaded


def read_alike(files: Mapping[str, Path | None], read: Callable[..., RankingDataset]) -> dict[str, RankingDataset]:
    """Datasets by role with the same number of features: a sparse file may omit the last ones. ``fit`` matches named columns."""
    paths = {role: path for role, path in files.items() if path is not None}
    datasets = {role: read(path) for role, path in paths.items()}
    width = max(dataset.num_features for dataset in datasets.values())
    return {
        role: dataset
        if dataset.num_features in (0, width) or dataset.feature_names is not None
        else read(paths[role], num_features=width)
        for role, dataset in datasets.items()
    }


def pairs_in(
    texts: Iterable[str], option: str, form: str, *, name: re.Pattern[str] = re.compile(".+")
) -> Iterator[tuple[str, str]]:
    """Name and value of each ``NAME=VALUE``."""
    for text in texts:
        key, _, value = (word.strip() for word in text.partition("="))
        if not name.fullmatch(key) or not value:
            raise RankPolicyError(f"{option} must be {form}; got {text!r:.80}.")
        yield key, value


def names_in(text: str, option: str, *, such_as: str) -> list[str]:
    """The names in a list separated by commas, each once."""
    names = list(dict.fromkeys(name for name in (word.strip() for word in text.split(",")) if name))
    if not names:
        raise RankPolicyError(f"{option} must name at least one {such_as}.")
    return names


def numbers_in(text: str, option: str, *, such_as: str) -> list[float]:
    """The numbers in a list separated by commas."""
    try:
        return [float(word) for word in text.split(",") if word.strip()]
    except ValueError:
        raise RankPolicyError(
            f"{option} must be numbers separated by commas, such as {such_as}; got {text!r}."
        ) from None
