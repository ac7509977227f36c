"""Word vectors in GloVe's text format: each line has a word and its numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.arguments import checked_kinds, seeded
from rankpolicy.display import frozen_value
from rankpolicy.files import checked_file, read_text_bytes
from rankpolicy.types import RankPolicyError


class NumberedWords(Protocol):
    """A vocabulary, as ``WordVectors.rows_for`` needs it; number 0 is padding."""

    @property
    def number_of(self) -> Mapping[str, int]:
        """The number of each word."""
        ...

    def __len__(self) -> int:
        """The number of numbers, including padding."""
        ...


@frozen_value()
class WordVectors:
    """Words and their vectors.

    Parameters
    ----------
    words
        The words.
    vectors
        Vector of each word (words, size).
    """

    words: tuple[str, ...]
    vectors: NDArray[np.float32]

    def rows_for(self, vocabulary: NumberedWords, *, random_state: int = 0) -> NDArray[np.float32]:
        """A vector for every number of a vocabulary (numbers, size).

        The vector of padding is 0. Words without a vector get a random one, with mean and standard deviation of the known vectors.

        Parameters
        ----------
        vocabulary
            The vocabulary.
        random_state
            Seed of the random vectors.
        """
        generator = seeded(random_state)
        size = self.vectors.shape[1]
        rows = generator.normal(self.vectors.mean(), self.vectors.std(), (len(vocabulary), size)).astype(np.float32)
        rows[0] = 0
        pairs = [(number, row) for row, word in enumerate(self.words) if (number := vocabulary.number_of.get(word))]
        if not pairs:
            raise RankPolicyError(
                "the word vectors must share words with the vocabulary; they share none. Are they of another language or in capitals?"
            )
        numbers, sources = map(list, zip(*pairs, strict=True))
        rows[numbers] = self.vectors[sources]
        return rows


@checked_kinds
def read_glove(path: str | os.PathLike[str]) -> WordVectors:
    """Read word vectors; all lines must have as many numbers as the first.

    Parameters
    ----------
    path
        The file, plain or compressed with gzip or zstandard.
    """
    file = checked_file(path)
    lines = read_text_bytes(file).tobytes().split(b"\n")[:-1]
    width = len(lines[0].split(b" ")) - 1
    if width < 1:
        raise RankPolicyError(
            f"{file}, line 1 must be a word and its numbers with spaces between; got {lines[0]!r:.60}."
        )
    words = []
    for number, line in enumerate(lines, 1):
        word, space, _ = line.partition(b" ")
        if line.count(b" ") != width or not space or not word:
            raise RankPolicyError(
                f"{file}, line {number} must be a word and {width} numbers, as line 1 is; it has {line.count(b' ')} numbers."
            )
        words.append(word.decode("utf-8", errors="replace"))
    try:
        vectors = np.array([line.partition(b" ")[2].split(b" ") for line in lines], dtype=np.float32)
    except ValueError:
        vectors = np.full((len(lines), width), np.nan, np.float32)
    if not np.isfinite(vectors).all():
        raise RankPolicyError(
            f"{file}, line {_first_without_numbers(lines)} must hold {width} finite numbers behind its word."
        )
    # The first vector of a repeated word is kept: GloVe is sorted by frequency, and repetitions are artefacts.
    first = {word: row for row, word in reversed(list(enumerate(words)))}
    rows = sorted(first.values())
    return WordVectors(tuple(words[row] for row in rows), vectors[rows])


def _first_without_numbers(lines: list[bytes]) -> int:
    for number, line in enumerate(lines, 1):
        try:
            if not np.isfinite(np.array(line.split(b" ")[1:], dtype=np.float32)).all():
                return number
        except ValueError:
            return number
    return 0
