"""A vocabulary: the words of texts as numbers."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.display import frozen_value
from rankpolicy.types import RankPolicyError

# A word is a run of letters, digits and underscores, or one other sign; endings such as 's are words of their own, as in GloVe.
_WORD = re.compile(r"'[^\W\d_]+|\w+|[^\w\s]")
NUM_UNKNOWN = 1000


@checked_kinds
def tokenize(text: str) -> list[str]:
    """The words of a text in lower case; each punctuation mark is a word.

    Parameters
    ----------
    text
        The text.

    >>> tokenize("What's Paris' area, 105.4 km²?")
    ['what', "'s", 'paris', "'", 'area', ',', '105', '.', '4', 'km²', '?']
    """
    return _WORD.findall(text.lower())


@frozen_value()
class Vocabulary:
    """Numbers of words: 0 is padding, then come the words, then ``NUM_UNKNOWN`` numbers to which unknown words are hashed.

    An unknown name therefore has the same number in a query and in an item.

    Parameters
    ----------
    words
        The words; word i has number i + 1.

    >>> vocabulary = Vocabulary.of(["a b a c"], min_count=1)
    >>> vocabulary.words, vocabulary.encode("B a!")
    (('a', 'b', 'c'), [2, 1, 975])
    >>> len(vocabulary)
    1004
    """

    words: tuple[str, ...]
    number_of: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        numbers = {word: number for number, word in enumerate(self.words, 1)}
        if len(numbers) < len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise RankPolicyError(f"the words of a vocabulary must differ; {twice!r} occurs twice.")
        object.__setattr__(self, "number_of", numbers)

    @classmethod
    def of(cls, texts: Iterable[str], *, min_count: int = 1, also: Iterable[str] = ()) -> Vocabulary:
        """The vocabulary of some texts, most frequent words first.

        Parameters
        ----------
        texts
            The texts.
        min_count
            Leave out words that occur less often.
        also
            Words to add after those of the texts, such as those with a pretrained vector.
        """
        if min_count < 1:
            raise RankPolicyError(f"min_count must be at least 1; got {min_count}.")
        counts = Counter(word for text in texts for word in tokenize(text))
        frequent = [word for word, count in counts.most_common() if count >= min_count]
        return cls(tuple(dict.fromkeys([*frequent, *also])))

    def __len__(self) -> int:
        """The number of numbers, including padding and those of unknown words."""
        return 1 + len(self.words) + NUM_UNKNOWN

    def encode(self, text: str, *, max_tokens: int | None = None) -> list[int]:
        """The numbers of the words of a text.

        Parameters
        ----------
        text
            The text.
        max_tokens
            Read only so many words; None: all.
        """
        return list(self._numbers(tokenize(text)[:max_tokens]))

    def _numbers(self, words: Iterable[str]) -> Iterator[int]:
        for word in words:
            number = self.number_of.get(word)
            # crc32 rather than hash(), which differs between processes.
            yield 1 + len(self.words) + zlib.crc32(word.encode()) % NUM_UNKNOWN if number is None else number
