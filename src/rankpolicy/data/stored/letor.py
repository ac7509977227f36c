"""LETOR files that stay on disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.letor_text import Layout, parse_with_layout, texts_at
from rankpolicy.data.stored.scan import Block, StoredAs, scanned
from rankpolicy.declarations.arguments import checked_kinds, checked_path, whole_number
from rankpolicy.files import text_blocks
from rankpolicy.kernels.codes import HIGHEST_FEATURE_ID, ITEM
from rankpolicy.types import RankPolicyError

_MOST_FEATURES = 100_000


@checked_kinds
def scan_letor(
    path: str | os.PathLike[str],
    *,
    num_features: int | None = None,
    stored_as: StoredAs = "uint8",
    cache: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> RankingDataset:
    """A dataset of a LETOR or SVMlight file, or of all files of a folder, whose features stay on disk.

    The lines are those of ``read_letor``, each with a qid; item ids are not kept. The rest is as in ``scan_parquet``.

    Parameters
    ----------
    path
        The file, plain or compressed with gzip or zstandard, or a folder whose files are read in the order of their names.
    num_features
        Number of features, so that training and test data agree; a higher feature id is an error. None: the highest id.
    stored_as
        Type of the stored features: "uint8", "uint16" or "float32", as in ``scan_parquet``.
    cache
        Folder of the cache; None: ``$XDG_CACHE_HOME/rankpolicy`` or ``~/.cache/rankpolicy``. It may be removed at any time.
    progress
        Whether to show progress on stderr.
    """
    source_path = Path(checked_path(path))
    if num_features is not None:
        whole_number("num_features", num_features, at_least=1, at_most=_MOST_FEATURES)
    files: tuple[Path, ...] = (source_path,)
    if os.path.isdir(source_path):
        files = tuple(sorted(file for file in source_path.iterdir() if file.is_file() and file.name[0] not in "._"))
    if not files:
        raise RankPolicyError(f"{source_path} must hold LETOR files; it is empty.")
    source = _LetorFiles(files, _layout_of(files, num_features))
    folder = None if cache is None else Path(checked_path(cache))
    return scanned(source, stored_as=stored_as, cache=folder, progress=progress)


@dataclass(frozen=True, slots=True)
class _LetorFiles:
    files: tuple[Path, ...]
    layout: Layout

    feature_names: ClassVar[tuple[str, ...] | None] = None

    @property
    def reading(self) -> dict[str, Any]:
        return {"format": "letor", "layout": list(self.layout)}

    def blocks(self) -> Iterator[Block]:
        for file in self.files:
            first_line = 0
            for text in text_blocks(file):
                try:
                    yield self._block(text)
                except RankPolicyError as error:
                    raise RankPolicyError(_with_line_of_file(file, first_line, str(error))) from None
                first_line += int(np.count_nonzero(text == ord("\n")))

    def _block(self, text: NDArray[np.uint8]) -> Block:
        lines = parse_with_layout(text, self.layout)
        rows = np.flatnonzero(lines.kinds == ITEM)
        return Block(
            columns=np.ascontiguousarray(lines.features[rows].T),
            labels=lines.labels[rows],
            query_ids=texts_at(text, lines.query_ids[rows]),
        )


def _layout_of(files: tuple[Path, ...], num_features: int | None) -> Layout:
    """The lowest feature id and the number of features, from a pass over all files."""
    lowest, highest = HIGHEST_FEATURE_ID, -1
    for file in files:
        first_line = 0
        for text in text_blocks(file):
            try:
                lines = parse_with_layout(text, Layout(first_id=1, num_features=1))
            except RankPolicyError as error:
                raise RankPolicyError(_with_line_of_file(file, first_line, str(error))) from None
            lowest, highest = min(lowest, int(lines.lowest.min())), max(highest, int(lines.highest.max()))
            if num_features is not None and highest - (0 if lowest == 0 else 1) >= num_features:
                line = first_line + int(lines.highest.argmax()) + 1
                raise RankPolicyError(
                    f"{file}: line {line}: expected {num_features} features, as num_features says; got feature id {highest}.",
                    python="Raise num_features, or leave it out.",
                    command_line="The model was trained without these features: leave them out of the file.",
                )
            first_line += int(np.count_nonzero(text == ord("\n")))
    if highest < 0 and num_features is None:
        raise RankPolicyError(
            f"{files[0]}: no line holds a feature:value pair. Check the format: label qid:id 1:value 2:value ..."
        )
    first_id = 0 if lowest == 0 else 1
    if highest - first_id >= _MOST_FEATURES:
        raise RankPolicyError(
            f"features that stay on disk must be at most {_MOST_FEATURES}; feature ids go up to {highest}. Number them without gaps."
        )
    return Layout(first_id, num_features or highest - first_id + 1)


def _with_line_of_file(file: Path, first_line: int, message: str) -> str:
    """The message about a line of a block as one about that line of the file."""
    return f"{file}: " + re.sub(r"^line (\d+)", lambda line: f"line {first_line + int(line[1])}", message)
