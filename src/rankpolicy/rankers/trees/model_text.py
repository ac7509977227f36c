"""LightGBM's model text, checked before LightGBM reads it: it trusts the text, and crashes or hangs on trees that are none."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

from rankpolicy.types import RankPolicyError

_END = "end of trees\n"
_TREE = re.compile(r"Tree=(\d{1,9})\n")
_INTEGER = re.compile(r"-?[0-9]{1,10}")
_NUMBER = re.compile(r"[-+]?([0-9][0-9.eE+-]{0,40}|inf|nan)")
_CATEGORICAL, _HIGHEST_DECISION = 1, 15  # the lowest of four bits
_HIGHEST = 2**31 - 1
_HIGHEST_WORD = 2**32 - 1


def checked_model_text(content: bytes, *, num_features: int) -> str:
    """Of the text that ``model_to_string`` gave, what LightGBM needs: header and trees, after all of it was checked.

    Every node must be the child of exactly one other node, every leaf likewise, features must exist, leaf values must be finite and
    thresholds numbers.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise _damaged("it is no text") from None
    head, end, _ = text.partition(_END)
    if not end or not head.startswith("tree\n"):
        raise _damaged("it does not start with 'tree' and go on to 'end of trees'")
    starts = [match.start() for match in _TREE.finditer(head) if head[match.start() - 1] == "\n"]
    blocks = [head[start:stop] for start, stop in zip(starts, [*starts[1:], len(head)], strict=True)]
    header = _fields(head[: starts[0]] if starts else head, "the header")
    if header.get("num_class") != "1" or header.get("num_tree_per_iteration") != "1":
        raise _damaged("it must have one class and one tree per iteration")
    (highest,) = _integers(header, "max_feature_idx", 1, "the header", low=0, high=_HIGHEST)
    if highest + 1 != num_features:
        raise _damaged(f"its trees read {highest + 1} features, the ranker {num_features}")
    sizes = _integers(header, "tree_sizes", len(blocks), "the header", low=0, high=_HIGHEST)
    if list(sizes) != [len(block.encode()) for block in blocks]:
        raise _damaged("tree_sizes are not the sizes of its trees")
    for number, block in enumerate(blocks):
        _check_tree(block, number, num_features)
    return f"{head}{_END}\npandas_categorical:null\n"


def _check_tree(block: str, number: int, num_features: int) -> None:
    location = f"tree {number}"
    fields = _fields(block, location)
    if fields.get("Tree") != str(number):
        raise _damaged(f"{location} is out of order")
    if fields.get("is_linear", "0") != "0":
        raise _damaged(f"{location} has linear leaves, which no ranker makes")
    (leaves,) = _integers(fields, "num_leaves", 1, location, low=1, high=_HIGHEST)
    if leaves > len(block):  # before anything of that size is made
        raise _damaged(f"{location} says it has {leaves} leaves")
    (categorical,) = _integers(fields, "num_cat", 1, location, low=0, high=len(block))
    nodes = leaves - 1
    _numbers(fields, "leaf_value", leaves, location, finite=True)
    for name, count in (("leaf_weight", leaves), ("internal_value", nodes), ("internal_weight", nodes)):
        _optional_numbers(fields, name, count, location)
    _optional_numbers(fields, "split_gain", nodes, location)
    for name, count in (("leaf_count", leaves), ("internal_count", nodes)):
        if fields.get(name):
            _integers(fields, name, count, location, low=0, high=_HIGHEST)
    if "shrinkage" in fields:
        _numbers(fields, "shrinkage", 1, location, finite=True)
    if nodes > 0:
        _check_splits(fields, leaves, categorical, num_features, location)


def _check_splits(fields: dict[str, str], leaves: int, categorical: int, num_features: int, location: str) -> None:
    """What the nodes of a tree decide, and that they form a tree."""
    nodes = leaves - 1
    _integers(fields, "split_feature", nodes, location, low=0, high=num_features - 1)
    thresholds = _numbers(
        fields, "threshold", nodes, location, finite=False
    )  # infinite where only missing values go the other way
    if any(map(math.isnan, thresholds)):
        raise _damaged(f"threshold of {location} must be a number")
    decisions = _integers(fields, "decision_type", nodes, location, low=0, high=_HIGHEST_DECISION)
    _check_categories(fields, categorical, decisions, thresholds, location)
    left = _integers(fields, "left_child", nodes, location, low=-leaves, high=nodes - 1)
    right = _integers(fields, "right_child", nodes, location, low=-leaves, high=nodes - 1)
    # A tree: each leaf (-1 to -leaves) and each node but the root is a child once, and a child comes after its parent.
    if sorted([*left, *right]) != [*range(-leaves, 0), *range(1, nodes)]:
        raise _damaged(f"the nodes of {location} are no tree")
    if any(0 <= child <= node for node, pair in enumerate(zip(left, right, strict=True)) for child in pair):
        raise _damaged(f"the nodes of {location} are no tree")


def _check_categories(
    fields: dict[str, str], count: int, decisions: Sequence[int], thresholds: Sequence[float], location: str
) -> None:
    """A categorical split reads its categories as bits of the words between two boundaries."""
    is_categorical = [bool(decision & _CATEGORICAL) for decision in decisions]
    if count == 0:
        if any(is_categorical):
            raise _damaged(f"{location} splits by a category and has none")
        return
    bounds = _integers(fields, "cat_boundaries", count + 1, location, low=0, high=_HIGHEST)
    words = fields.get("cat_threshold", "").split(" ")
    _integers(fields, "cat_threshold", len(words), location, low=0, high=_HIGHEST_WORD)
    if bounds[0] != 0 or bounds[-1] != len(words) or any(a > b for a, b in itertools.pairwise(bounds)):
        raise _damaged(f"the categories of {location} lie outside its words")
    for is_category, threshold in zip(is_categorical, thresholds, strict=True):
        if is_category and not (math.isfinite(threshold) and threshold == int(threshold) and 0 <= threshold < count):
            raise _damaged(f"{location} splits by a category that is not there")


def _fields(text: str, location: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in text.split("\n"):
        name, _, value = line.partition("=")
        if name in fields and name:
            raise _damaged(f"{name} stands twice in {location}")
        fields[name] = value
    return fields


def _integers(fields: dict[str, str], name: str, count: int, location: str, *, low: int, high: int) -> list[int]:
    words = _words(fields, name, count, location)
    values = [int(word) if _INTEGER.fullmatch(word) else high + 1 for word in words]
    if any(not low <= value <= high for value in values):
        raise _damaged(f"{name} of {location} must be whole numbers from {low} to {high}")
    return values


def _numbers(fields: dict[str, str], name: str, count: int, location: str, *, finite: bool) -> list[float]:
    words = _words(fields, name, count, location)
    try:
        values = [float(word) if _NUMBER.fullmatch(word) else float("x") for word in words]
    except ValueError:
        raise _damaged(f"{name} of {location} must be numbers") from None
    if finite and not all(map(math.isfinite, values)):
        raise _damaged(f"{name} of {location} must be finite")
    return values


def _optional_numbers(fields: dict[str, str], name: str, count: int, location: str) -> None:
    if fields.get(name):
        _numbers(fields, name, count, location, finite=False)


def _words(fields: dict[str, str], name: str, count: int, location: str) -> list[str]:
    text = fields.get(name)
    words = [] if not text else text.split(" ")
    if len(words) != count:
        raise _damaged(f"{name} of {location} must have {count} values; it has {len(words)}")
    return words


def _damaged(reason: str) -> RankPolicyError:
    return RankPolicyError(f"the text of the trees is damaged: {reason}. Copy or train the model again.")
