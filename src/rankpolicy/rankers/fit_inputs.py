"""What ``fit`` is given: training data from arrays, frames, click tables or datasets, validation sets, and their checks."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rankpolicy.data.categories import with_categories
from rankpolicy.data.dataset import HAS_QUERIES, RankingDataset
from rankpolicy.data.formats.frames import dataset_of_rows, is_frame
from rankpolicy.declarations.arguments import checked_path
from rankpolicy.fairness.groups import encode_groups
from rankpolicy.rankers.familiar_names import what_is_meant
from rankpolicy.rankers.inputs import (
    Groups,
    check_columns,
    checked_set_names,
    columns_to_read,
    datasets_of_lists,
    from_click_table,
    is_click_table,
    with_groups,
    with_sample_weight,
)
from rankpolicy.types import RankPolicyError, RankPolicyTypeError, unknown_name

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

Options = ParamSpec("Options")
Self = TypeVar("Self", bound="Ranker")
Result = TypeVar("Result")


def refusing_unknown_arguments(
    method: Callable[Concatenate[Self, Options], Result],
) -> Callable[Concatenate[Self, Options], Result]:
    """The method, which answers an argument that it does not have with what is meant."""
    arguments = [name for name in inspect.signature(method).parameters if name != "self"]

    @functools.wraps(method)
    def checked(self: Self, /, *values: Options.args, **options: Options.kwargs) -> Result:
        for name in options:
            if name not in arguments:
                raise _unknown_argument(method.__name__, name, arguments, type(self))
        return method(self, *values, **options)

    return checked


def _unknown_argument(method: str, name: str, arguments: list[str], ranker: type[Ranker]) -> RankPolicyTypeError:
    if name in ranker.setting_names():
        meant: str | None = f"it is a setting of the ranker: {ranker.__name__}({name}=...)"
    else:
        meant = what_is_meant(name, ranker.setting_names(), owner=ranker.__name__)
    if meant is None:
        return RankPolicyTypeError(unknown_name(f"argument of {method}:", name, arguments))
    return RankPolicyTypeError(f"{method} has no argument {name!r}; {meant}.")


def checked_checkpoint(checkpoint: Any, resume: Any) -> Path | None:
    """The file of a training state, if ``resume`` and it go together."""
    if not isinstance(resume, bool | np.bool_):
        raise RankPolicyError(f"resume must be True or False; got {resume!r:.60}.")
    if resume and checkpoint is None:
        raise RankPolicyError("resume=True needs checkpoint=, the file to go on from.")
    if checkpoint is not None and os.path.isdir(checked_path(checkpoint)):
        raise RankPolicyError(f"checkpoint must name a file; {checkpoint} is a directory. Name a file in it.")
    return None if checkpoint is None else Path(checkpoint)


def training_dataset(
    X: Any,
    y: str | ArrayLike | None,
    qid: str | ArrayLike | None,
    group: ArrayLike | None,
    *,
    protected: Groups | None = None,
    sample_weight: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    categorical: Collection[str] = (),
) -> RankingDataset:
    """Data with labels: a dataset, or one made from arrays, a frame (of which ``feature_names`` are read) or a click table.

    Text in the columns ``categorical`` is read as categories. Protected groups and query weights are added where they are given.
    """
    if isinstance(X, RankingDataset):
        if y is not None or qid is not None or group is not None:
            raise RankPolicyError(HAS_QUERIES)
        dataset = X
    elif is_click_table(X):
        if y is not None or qid is not None or group is not None:
            raise RankPolicyError(HAS_QUERIES)
        dataset = from_click_table(X)
    elif y is None:
        raise RankPolicyError(
            "fit needs labels: fit(X, y, qid=...) with arrays or names of columns of a frame, a RankingDataset that holds them, or a click "
            "table, a frame with the columns query_text, item_text and clicked. fit(X) requires y to be passed, but the target y is None."
        )
    else:
        dataset = dataset_of_rows(X, y, qid=qid, group=group, features=feature_names, categorical=categorical)
    if protected is not None:
        dataset = with_groups(dataset, protected)
    return dataset if sample_weight is None else with_sample_weight(dataset, sample_weight)


def read_eval_sets(
    valid: Any,
    eval_set: Any,
    eval_qid: Any,
    eval_group: Any,
    eval_names: Sequence[str] | None,
    *,
    y: Any,
    qid: Any,
    train: RankingDataset,
) -> dict[str, RankingDataset]:
    """The validation sets by name, in order: from ``valid``, or from the lists that LightGBM and XGBoost take.

    ``y`` and ``qid`` are those of the training data: names of columns there are names of columns of a frame ``valid`` too.
    """
    if valid is not None and eval_set is not None:
        raise RankPolicyError("pass the validation data once: valid= or eval_set=, not both.")
    if valid is not None:
        datasets = [_validation_dataset(valid, y, qid, train)]
    else:
        datasets = datasets_of_lists(eval_set, eval_qid, eval_group, train)
    if eval_names is None:
        return {f"valid_{number}": dataset for number, dataset in enumerate(datasets)}
    return dict(zip(checked_set_names(eval_names, len(datasets)), datasets, strict=True))


def _validation_dataset(valid: Any, y: Any, qid: Any, train: RankingDataset) -> RankingDataset:
    if isinstance(valid, RankingDataset):
        return valid
    if is_frame(valid) and isinstance(y, str) and isinstance(qid, str):
        columns = columns_to_read(valid, train.feature_names, what="validation data")
        return dataset_of_rows(valid, y, qid=qid, features=columns, categorical=train.categories or ())
    if not is_click_table(valid):
        raise RankPolicyError(
            f"valid must be a RankingDataset; got {type(valid).__name__}. Arrays go into eval_set=[(Xv, yv)]; a frame may be given "
            "where y and qid are names of its columns."
        )
    return from_click_table(valid)


def check_can_learn(
    train: RankingDataset, *, learns_from_single_items: bool, has_custom_reward: bool, compares_groups: bool
) -> None:
    """Refuse training data whose rankings are all equally good, or warn where a method can still learn from items one by one."""
    if compares_groups and train.groups_by_query is not None and len(encode_groups(train.groups_by_query).names) < 2:
        raise RankPolicyError(
            f"fairness between protected groups needs two or more of them in the training data; all {train.num_items} items are in group "
            f"{train.groups_by_query[0]!s}. Is protected= the right column?"
        )
    lowest, highest = train.labels_by_query.min(), train.labels_by_query.max()
    if int(train.sizes.max()) < 2:
        problem = (
            f"no query has two items to rank: there are {train.num_queries} queries of one item"
            + (" (one sample only, n_samples=1)" if train.num_items == 1 else "")
            + ". Are qid and item id swapped? qid is the same for all items that are ranked together"
        )
    elif not has_custom_reward and not _some_labels_differ(train):
        problem = (
            f"no query has items of different labels (they go from {lowest:g} to {highest:g}), so all rankings are equally good. "
            "Check labels and qid"
        )
    else:
        return
    if not learns_from_single_items or lowest == highest:
        raise RankPolicyError(f"nothing can be learned: {problem}.")
    warnings.warn(f"{problem}. Only differences between queries are learned.", stacklevel=4)


def _some_labels_differ(dataset: RankingDataset) -> bool:
    """Whether a query has items of different labels; labels on disk are read up to the first such query."""
    for labels, starts in dataset.labels_of_queries():
        if (np.minimum.reduceat(labels, starts) < np.maximum.reduceat(labels, starts)).any():
            return True
    return False


def check_clicks(train: RankingDataset, ranker: type[Ranker]) -> None:
    """Refuse weighted clicks where weights have no effect; warn of position bias in clicks without weights."""
    from rankpolicy.rankers import RANKERS

    if ranker.uses_query_weights and not ranker.learns_from_relevances and train.label_kind == "relevances":
        able = ", ".join(member.__name__ for member in RANKERS.installed().values() if member.learns_from_relevances)
        raise RankPolicyError(
            f"{ranker.__name__} does not learn from relevances that were estimated from clicks. These rankers do: {able}."
        )
    if not ranker.uses_query_weights and (train.query_weights is not None or train.label_kind == "relevances"):
        able = ", ".join(member.__name__ for member in RANKERS.installed().values() if member.uses_query_weights)
        raise RankPolicyError(
            f"{ranker.__name__} does not use query weights, which weighted data and clicks need. These rankers use them: {able}."
        )
    has_ranks = train.shown_by_query is not None and train.shown_by_query.ranks is not None
    if train.label_kind == "clicks" and has_ranks and train.query_weights is None:
        warnings.warn(
            "this learns from clicks as they are, position bias included. Weight them: weighted_by_propensity(train, propensities), "
            "with those of estimate_position_bias, or with propensities of 1 to keep position bias on purpose.",
            stacklevel=4,
        )


def check_loss_is_bounded(train: RankingDataset, *, loss: str, instead: str) -> None:
    """Refuse relevances estimated from single clicks, all 1 or more, for a loss that is then unbounded below."""
    if train.label_kind != "relevances":
        return
    clicked = train.labels_by_query[train.labels_by_query > 0]
    if len(clicked) and clicked.min() >= 1 and clicked.max() > 1:
        raise RankPolicyError(
            f"for labels above 1 {loss} is unbounded below, and the inverse propensities of single clicks are all 1 or more: {instead}."
        )


def matched_features(
    dataset: RankingDataset,
    num_features: int,
    feature_names: Sequence[str] | None,
    categories: Mapping[str, Sequence[str]] | None,
    *,
    what: str,
    ranker: str = "fit",
) -> RankingDataset:
    """The data with the feature columns of the training data: by name where both sides have names, else by their number.

    Columns may come in another order and beside others. Categories that the training data did not have become missing values.
    """
    if feature_names is not None and dataset.feature_names is not None:
        has = {name: column for column, name in enumerate(dataset.feature_names)}
        check_columns(list(has), feature_names, what=what)
        if tuple(feature_names) != dataset.feature_names:
            dataset = replace(
                dataset,
                features_by_query=dataset.features_by_query[:, [has[name] for name in feature_names]],
                feature_names=tuple(feature_names),
                categories={k: v for k, v in (dataset.categories or {}).items() if k in feature_names} or None,
            )
    if dataset.num_features != num_features:
        raise RankPolicyError(
            f"{what} must have the {num_features} features of the training data; it has {dataset.num_features}. "
            f"(X has {dataset.num_features} features, but {ranker} is expecting {num_features} features as input.)",
            python=f"Pass the same columns; sparse files: read_letor(path, num_features={num_features}).",
            command_line="Give a file with the same columns.",
        )
    trained_categories, data_categories = categories or {}, dataset.categories or {}
    if set(trained_categories) != set(data_categories):
        name = sorted(set(trained_categories) ^ set(data_categories))[0]
        kinds = ("categories", "numbers") if name in trained_categories else ("numbers", "categories")
        raise RankPolicyError(
            f"{what} must have the columns of the training data; there, {name!r} held {kinds[0]}, here it holds {kinds[1]}. "
            "Give it as a frame with columns of the same types."
        )
    return with_categories(dataset, trained_categories) if trained_categories else dataset


def check_kind_of_data(dataset: RankingDataset, *, reads_texts: bool, what: str) -> None:
    """Refuse data without texts if the ranker reads texts, and data without features if it reads features."""
    if reads_texts and dataset.texts_by_query is None:
        raise RankPolicyError(
            f"this ranker reads texts; {what} has {dataset.num_features} features and no texts. "
            "Pass a dataset of texts (from_texts, read_question_answering, read_click_table), a frame with columns query_text and "
            "item_text, or use rank_texts(query, items)."
        )
    if not reads_texts and dataset.num_features == 0:
        raise RankPolicyError(
            f"this ranker reads features; {what} has none"
            + (
                ", only texts."
                if dataset.texts_by_query is not None
                else f": 0 feature(s) (shape=({dataset.num_items}, 0)) while a minimum of 1 is required."
            ),
            python="Choose a text model, such as model='mcan'." if dataset.texts_by_query is not None else "",
            command_line="Choose a text model, such as --set model=mcan." if dataset.texts_by_query is not None else "",
        )
