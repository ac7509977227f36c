"""What ``fit`` is given: training data from arrays, frames, click tables or datasets, validation sets, and their checks."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.matrix_or_frame import dataset_of_rows, is_frame
from rankpolicy.declarations.arguments import as_float64, checked_path
from rankpolicy.fairness.groups import encode_groups
from rankpolicy.rankers.familiar_names import what_is_meant
from rankpolicy.rankers.inputs import (
    Groups,
    columns_to_read,
    from_click_table,
    is_click_table,
    refuse_arrays_with_dataset,
    with_groups,
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
        refuse_arrays_with_dataset(y, qid, group)
        dataset = X
    elif is_click_table(X):
        refuse_arrays_with_dataset(y, qid, group)
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
    return dataset if sample_weight is None else _with_sample_weight(dataset, sample_weight)


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
        datasets = _datasets_of_lists(eval_set, eval_qid, eval_group, train)
    if eval_names is None:
        return {f"valid_{number}": dataset for number, dataset in enumerate(datasets)}
    return dict(zip(_checked_names(eval_names, len(datasets)), datasets, strict=True))


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


def _datasets_of_lists(eval_set: Any, eval_qid: Any, eval_group: Any, train: RankingDataset) -> list[RankingDataset]:
    """The datasets of LightGBM's lists: pairs (Xv, yv), or one bare pair, and the queries of each."""
    if eval_set is None:
        if eval_qid is not None or eval_group is not None:
            raise RankPolicyError(
                "eval_qid and eval_group are the queries of eval_set; give eval_set=[(Xv, yv)] with them."
            )
        return []
    if isinstance(eval_set, tuple) and len(eval_set) == 2 and not isinstance(eval_set[0], tuple):
        eval_set, eval_qid, eval_group = [eval_set], _as_list_of_one(eval_qid), _as_list_of_one(eval_group)
    queries = {"qid": eval_qid, "group": eval_group}
    lists = {name: values for name, values in queries.items() if values is not None}
    if not all(isinstance(values, list | tuple) for values in (eval_set, *lists.values())):
        raise RankPolicyError("eval_set, eval_qid and eval_group must be lists: eval_set=[(Xv, yv)], eval_qid=[qid].")
    if len(lists) != 1 or any(len(values) != len(eval_set) for values in lists.values()):
        lengths = " and ".join(str(len(values)) for values in lists.values()) or "none"
        raise RankPolicyError(
            "give one validation set with its queries, eval_set=[(Xv, yv)] and eval_qid=[qid] or eval_group=[sizes], or every one its own: "
            f"eval_set has {len(eval_set)} pairs, so eval_qid or eval_group must have {len(eval_set)} entries; got {lengths}."
        )
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in eval_set):
        raise RankPolicyError(
            "eval_set must hold one pair of features and labels per validation set: eval_set=[(Xv, yv)]."
        )
    ((name, values),) = lists.items()
    try:
        return [
            dataset_of_rows(
                features,
                labels,
                **{name: value},
                features=columns_to_read(features, train.feature_names, what="it"),
                categorical=train.categories or (),
            )
            for (features, labels), value in zip(eval_set, values, strict=True)
        ]
    except RankPolicyError as error:
        raise error.within("eval_set") from None


def _as_list_of_one(values: Any) -> Any:
    """The queries of a bare pair (Xv, yv), in a list if they are not yet."""
    is_list = (
        isinstance(values, list | tuple) and len(values) == 1 and (isinstance(values[0], str) or np.ndim(values[0]) > 0)
    )
    return values if values is None or is_list else [values]


def _checked_names(eval_names: Sequence[str], num_sets: int) -> Sequence[str]:
    is_list = isinstance(eval_names, list | tuple) and all(isinstance(name, str) for name in eval_names)
    if not is_list or len(eval_names) != num_sets:
        raise RankPolicyError(
            f"eval_names must be a list of names, one for each of {num_sets} validation sets; got {eval_names!r:.80}."
        )
    if len(set(eval_names)) < num_sets or "training" in eval_names:
        raise RankPolicyError(
            f"eval_names must differ from one another and from 'training', the curves of the training data; got {list(eval_names)!r:.80}."
        )
    return eval_names


def _with_sample_weight(dataset: RankingDataset, sample_weight: ArrayLike) -> RankingDataset:
    """The dataset with these query weights."""
    if dataset.query_weights is not None:
        raise RankPolicyError(
            "sample_weight must not be given for data that has query weights already, such as weighted clicks. Leave it out."
        )
    weights = as_float64("sample_weight", sample_weight)
    if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
        raise RankPolicyError(
            f"sample_weight must be finite, 0 or more and not all 0 (all zero weights leave nothing to learn from); got {weights!r:.80}."
        )
    if weights.shape == (dataset.num_items,):
        weights = _weights_of_queries(dataset.in_query_order(weights), dataset)
    elif weights.shape != (dataset.num_queries,):
        raise RankPolicyError(
            f"sample_weight must have one value per query, shape ({dataset.num_queries},), or one per row, shape "
            f"({dataset.num_items},); got {weights.shape}."
        )
    return replace(dataset, query_weights=weights)


def _weights_of_queries(weights: NDArray[np.float64], dataset: RankingDataset) -> NDArray[Any]:
    first = weights[dataset.query_offsets[:-1]]
    differs = weights != np.repeat(first, dataset.sizes)
    if differs.any():
        item = int(np.flatnonzero(differs)[0])
        query = int(dataset.query_numbers[item])
        raise RankPolicyError(
            f"sample_weight must be equal for all rows of a query, since whole lists are learned from; query {dataset.query_ids[query]} "
            f"has {first[query]:g} and {weights[item]:g}. Give one weight per query."
        )
    return np.asarray(first)


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


def _some_labels_differ(dataset: RankingDataset, queries_at_once: int = 1 << 15) -> bool:
    """Whether a query has items of different labels; labels on disk are read up to the first such query."""
    for first in range(0, dataset.num_queries, queries_at_once):
        starts = dataset.query_offsets[first : first + queries_at_once + 1]
        labels = dataset.labels_by_query[starts[0] : starts[-1]]
        lowest, highest = (f.reduceat(labels, starts[:-1] - starts[0]) for f in (np.minimum, np.maximum))
        if (lowest < highest).any():
            return True
    return False


def check_clicks(train: RankingDataset, ranker: type[Ranker]) -> None:
    """Refuse weighted clicks where weights have no effect; warn of position bias in clicks without weights."""
    from rankpolicy.rankers import RANKERS

    if ranker.uses_query_weights and not ranker.learns_from_relevances and train.label_kind == "relevances":
        able = ", ".join(member.__name__ for member in RANKERS.values() if member.learns_from_relevances)
        raise RankPolicyError(
            f"{ranker.__name__} does not learn from relevances that were estimated from clicks. These rankers do: {able}."
        )
    if not ranker.uses_query_weights and (train.query_weights is not None or train.label_kind == "relevances"):
        able = ", ".join(member.__name__ for member in RANKERS.values() if member.uses_query_weights)
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
