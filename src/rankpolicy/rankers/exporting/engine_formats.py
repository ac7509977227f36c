"""One call from a fitted ranker to the files of a search engine; the table of formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members
from rankpolicy.rankers.exporting.engine_models import Layers, Trees, trees_needed
from rankpolicy.types import RankPolicyError
from rankpolicy.writing import atomic_write, checked_target

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

# The contents of the files of an engine by the ends of their names, the model first.
Files = dict[str, str | bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFormat:
    """What one engine reads."""

    engine: str  # in words
    # A function of the ranker, the names of its features and the name of the model.
    write: Callable[[Ranker, Sequence[str], str], Files]
    suffix: str = ".json"  # of the model's file
    # A pattern of the names of features that the engine takes, and the same in words.
    feature_name: str = r"[^\x00-\x1f\x7f]+"
    names_in_words: str = "without control characters"


FORMATS: Members[EngineFormat] = Members(
    "format",
    {
        "opensearch": "rankpolicy.rankers.exporting.opensearch:OPENSEARCH",
        "opensearch-ranklib": "rankpolicy.rankers.exporting.opensearch:RANKLIB",
        "elasticsearch": "rankpolicy.rankers.exporting.xgboost_file:ELASTICSEARCH",
        "xgboost": "rankpolicy.rankers.exporting.xgboost_file:XGBOOST",
        "vespa": "rankpolicy.rankers.exporting.vespa:VESPA",
        "vespa-onnx": "rankpolicy.rankers.exporting.vespa:VESPA_ONNX",
        "solr": "rankpolicy.rankers.exporting.solr:SOLR",
    },
)


def export_for_engine(ranker: Ranker, path: str | Path, format: str) -> list[Path]:
    """Write the files of an engine, the model at ``path`` and the others beside it; their paths."""
    target, engine = checked_target(path), FORMATS.named(format)
    if target.suffix != engine.suffix:
        raise RankPolicyError(f"the file of format {format!r} must end in {engine.suffix}; got {target.name!r}.")
    contents = engine.write(ranker, _feature_names(ranker, engine), target.stem)
    paths = [target.with_suffix(suffix) for suffix in contents]
    for file, content in zip(paths, contents.values(), strict=True):
        with atomic_write(file) as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
    return paths


def _feature_names(ranker: Ranker, engine: EngineFormat) -> list[str]:
    """The names of the features, or feature_1, feature_2, ... where they have none, if the engine takes them."""
    names = ranker.feature_names_ or [f"feature_{number}" for number in range(1, ranker.num_features_ + 1)]
    for name in names:
        if not re.fullmatch(engine.feature_name, name):
            raise RankPolicyError(
                f"{engine.engine} takes names of features {engine.names_in_words}; got {name!r}. Rename the column and train again."
            )
    return names


def only_trees(model: Trees | Layers, engine: str) -> Trees:
    """The model, if it is trees."""
    if isinstance(model, Layers):
        raise trees_needed(f"{engine} reads trees only")
    return model
