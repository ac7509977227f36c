"""The validation sets of one call of ``fit``, with their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from rankpolicy.arguments import checked_kinds
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.rankers.inputs import validation_dataset
from rankpolicy.types import RankPolicyError


@checked_kinds
def named_eval_sets(
    valid: Any,
    eval_set: Sequence[tuple[Any, ArrayLike]] | None,
    eval_qid: Sequence[ArrayLike] | None,
    eval_group: Sequence[ArrayLike] | None,
    eval_names: Sequence[str] | None,
    *,
    feature_names: Sequence[str] | None = None,
) -> dict[str, RankingDataset]:
    """The validation sets by name, in order: from ``valid``, or from the lists that LightGBM and XGBoost take.

    Parameters
    ----------
    valid
        One validation set.
    eval_set, eval_qid, eval_group
        Lists of equal length: pairs of features and labels, and the queries of each of them.
    eval_names
        Their names; None: valid_0, valid_1, ...
    feature_names
        Feature columns of the training data, which frames are matched to.
    """
    num_sets = 1 if eval_set is None else len(eval_set)
    if valid is not None or num_sets <= 1:
        first = validation_dataset(valid, eval_set, eval_qid, eval_group, feature_names=feature_names)
        sets = [] if first is None else [first]
    else:
        lists = [values for values in (eval_qid, eval_group) if values is not None]
        if len(lists) != 1 or len(lists[0]) != num_sets:
            raise RankPolicyError(
                f"give every validation set its queries: eval_set has {num_sets} pairs, so eval_qid or eval_group must have {num_sets} "
                f"entries; got {' and '.join(str(len(values)) for values in lists) or 'none'}."
            )
        sets = []
        for number in range(num_sets):
            qid, group = ([values[number]] if values is not None else None for values in (eval_qid, eval_group))
            dataset = validation_dataset(None, [eval_set[number]], qid, group, feature_names=feature_names)  # type: ignore[index]
            assert dataset is not None
            sets.append(dataset)
    return dict(zip(_names(eval_names, len(sets)), sets, strict=True))


def _names(given: Sequence[str] | None, num_sets: int) -> list[str]:
    if given is None:
        return [f"valid_{number}" for number in range(num_sets)]
    if isinstance(given, str) or not all(isinstance(name, str) for name in given) or len(given) != num_sets:
        raise RankPolicyError(
            f"eval_names must be a list of names, one for each of {num_sets} validation sets; got {given!r:.80}."
        )
    if len(set(given)) < num_sets or "training" in given:
        raise RankPolicyError(
            f"eval_names must differ from one another and from 'training', the curves of the training data; got {list(given)!r:.80}."
        )
    return list(given)
