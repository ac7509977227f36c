"""Click models in files: JSON documents."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rankpolicy.clicks.log.pairs import PairTable
from rankpolicy.clicks.models.definition import PAIR
from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.files import atomic_write
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.clicks.models.base import ClickModel

FILE_FORMAT, FILE_VERSION = "rankpolicy click model", 1


def write_click_model(model: ClickModel, path: str | os.PathLike[str]) -> None:
    """Write a model as JSON, whole or not at all; compressed where the name ends in .gz, .bz2 or .zst."""
    text = json.dumps(document_of(model), ensure_ascii=False, allow_nan=False)
    with atomic_write(path) as file:
        file.write((text + "\n").encode())


def restore_click_model(document: Mapping[str, Any], path: str | os.PathLike[str]) -> ClickModel:
    """The model that ``save`` or ``rankpolicy clicks fit`` wrote, from its document; ``rankpolicy.load`` calls this."""
    if document.get("version") != FILE_VERSION:
        raise RankPolicyError(
            f"{path} must be a click model of version {FILE_VERSION}; it is of version {document.get('version')}. "
            "Update rankpolicy, or fit the model again."
        )
    try:
        return CLICK_MODELS.named(document["model"]).from_dict(document)
    except RankPolicyError as error:
        raise RankPolicyError(f"{path}: {error}") from None
    except (KeyError, TypeError, IndexError) as error:
        raise RankPolicyError(
            f"{path} must be a complete click model; a part is missing or wrong ({error!r})."
        ) from None


def document_of(model: ClickModel) -> dict[str, Any]:
    """The model as a plain document; ``ClickModel.to_dict`` describes it."""
    of_pairs = _parameters_of_pairs(type(model))
    cuts = np.flatnonzero(np.diff(model.pairs.queries)) + 1
    queries = []
    for part in np.split(np.arange(len(model.pairs)), cuts):
        names = [model.pairs.item_names[item] for item in model.pairs.items[part]]
        entry: dict[str, Any] = {"query": model.pairs.query_names[model.pairs.queries[part[0]]], "items": names}
        queries.append(entry | {name: model.parameters[name][part].tolist() for name in of_pairs})
    return {
        "format": FILE_FORMAT,
        "version": FILE_VERSION,
        "model": model.name,
        "parameters": {name: values.tolist() for name, values in model.parameters.items() if name not in of_pairs},
        "defaults": dict(model.defaults),
        "priors": {name: list(prior) for name, prior in model.priors.items()},
        "objectives": list(model.objectives),
        "queries": queries,
    }


def model_of(kind: type[ClickModel], document: Mapping[str, Any]) -> ClickModel:
    """The model of a class from its document."""
    wanted = ("queries", "parameters", "defaults", "priors", "objectives")
    if missing := [name for name in wanted if name not in document]:
        raise RankPolicyError(
            f"a click model must be a mapping as to_dict() returns it; a part is missing or wrong (no {', '.join(missing)})."
        )
    entries = document["queries"]
    item_codes: dict[str, int] = {}
    codes = [[item_codes.setdefault(item, len(item_codes)) for item in entry["items"]] for entry in entries]
    # Items are numbered in the order of the file, which need not ascend within a query: pairs are sorted again.
    items = np.concatenate([np.array(part, np.int32) for part in codes])
    queries = np.repeat(np.arange(len(entries), dtype=np.int32), [len(part) for part in codes])
    order = np.lexsort((items, queries))
    parameters = {name: np.array(values, np.float64) for name, values in document["parameters"].items()}
    for name in _parameters_of_pairs(kind):
        parameters[name] = np.concatenate([np.array(entry[name], np.float64) for entry in entries])[order]
    return kind(
        pairs=PairTable(
            query_names=tuple(entry["query"] for entry in entries),
            item_names=tuple(item_codes),
            queries=queries[order],
            items=items[order],
        ),
        parameters=parameters,
        defaults=dict(document["defaults"]),
        priors={name: (float(prior[0]), float(prior[1])) for name, prior in document["priors"].items()},
        objectives=tuple(document["objectives"]),
    )


def _parameters_of_pairs(kind: type[ClickModel]) -> list[str]:
    return [name for name, axes in kind.axes.items() if axes == (PAIR,)]
