"""A vocabulary of words and letter n-grams that leaves out what only few users have seen."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.vocabulary import tokenize
from rankpolicy.display import frozen_value
from rankpolicy.types import RankPolicyError

_PAIRS_PER_BLOCK = 4_000_000  # (part, user) pairs in memory at once


def user_of_query(dataset: RankingDataset, min_users: int) -> NDArray[np.int64]:
    """The number of the user of each query (queries,)."""
    if dataset.shown_by_query is None or dataset.shown_by_query.users is None:
        raise RankPolicyError(
            f"min_users={min_users} needs the user of each query; the training data have none. "
            "Add a user column to the click table, or set min_users=1 to keep every word."
        )
    return np.unique(dataset.shown_by_query.users, return_inverse=True)[1]


def distinct_pairs(
    things: NDArray[np.int64], users: NDArray[np.int64], num_things: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct pairs of a thing and the user who has seen it, in the order of users."""
    pairs = np.sort(users * num_things + things)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    return pairs % num_things, pairs // num_things


def parts_seen(
    things: NDArray[np.int64],
    users: NDArray[np.int64],
    parts_of: Sequence[NDArray[np.int64]],
    num_parts: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct pairs of a part and its user, from the distinct pairs of things and users and the parts of each thing."""
    if num_parts == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    sizes = np.array([len(parts) for parts in parts_of])
    flat, starts = np.concatenate(parts_of), np.cumsum(sizes) - sizes
    cells = np.cumsum(sizes[things])
    ends_of_users = np.flatnonzero(np.diff(users, append=users[-1] + 1)) + 1
    blocks_of_pairs = []
    first = 0
    # Blocks of whole users, so that pairs which are distinct in a block are distinct overall.
    while first < len(things):
        done = cells[first - 1] if first else 0
        last = int(np.searchsorted(cells, done + _PAIRS_PER_BLOCK))
        next_end = int(np.searchsorted(ends_of_users, last, side="right"))
        end = int(ends_of_users[min(next_end, len(ends_of_users) - 1)])
        block = sizes[things[first:end]]
        within = np.arange(block.sum()) - np.repeat(np.cumsum(block) - block, block)
        parts = flat[np.repeat(starts[things[first:end]], block) + within]
        blocks_of_pairs.append(distinct_pairs(parts, np.repeat(users[first:end], block), num_parts))
        first = end
    seen_parts, seen_users = zip(*blocks_of_pairs, strict=True)
    return np.concatenate(seen_parts), np.concatenate(seen_users)


_BOUNDARY = "#"  # before and after a word; no word of tokenize contains it


@frozen_value(kw_only=True)
class HashingVocabulary:
    """Numbers of words and of the letter n-grams within them; 0 is padding, and a token outside the vocabulary has no number.

    With at most ``num_buckets`` tokens, the number of a token is its place, words before n-grams. With more, it is 1 + crc32 modulo
    ``num_buckets``: tokens share numbers, so that the table of their vectors stays small.

    Parameters
    ----------
    words, ngrams
        The tokens of the vocabulary.
    lengths
        Lengths of the n-grams, including the marks at the start and the end of a word.
    num_buckets
        The highest number that a token can have.

    >>> vocabulary = HashingVocabulary(words=("paris", "tea"), ngrams=("#pa", "ris"), lengths=(3,), num_buckets=10)
    >>> vocabulary.encode("Paris, park"), len(vocabulary)
    ([1, 3, 4, 3], 5)
    """

    words: tuple[str, ...]
    ngrams: tuple[str, ...]
    lengths: tuple[int, ...]
    num_buckets: int
    number_of: dict[str, int] = field(init=False, repr=False)  # of words
    number_of_ngram: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.num_buckets < 1:
            raise RankPolicyError(f"num_buckets must be at least 1; got {self.num_buckets}.")
        if any(length < 2 for length in self.lengths):
            raise RankPolicyError(f"ngrams must be lengths of at least 2; got {self.lengths}.")
        if len(self.words) + len(self.ngrams) <= self.num_buckets:
            words = {word: number for number, word in enumerate(self.words, 1)}
            ngrams = {ngram: number for number, ngram in enumerate(self.ngrams, 1 + len(self.words))}
        else:
            # No word starts with a space, so the n-gram "par" of "paris" and the word "par" get different hashes.
            words = {word: self._bucket(word) for word in self.words}
            ngrams = {ngram: self._bucket(" " + ngram) for ngram in self.ngrams}
        object.__setattr__(self, "number_of", words)
        object.__setattr__(self, "number_of_ngram", ngrams)

    @classmethod
    def of(
        cls,
        dataset: RankingDataset,
        *,
        ngrams: Sequence[int] = (3,),
        min_users: int = 1,
        num_buckets: int = 65536,
    ) -> HashingVocabulary:
        """The vocabulary of a dataset of texts.

        Parameters
        ----------
        dataset
            A dataset with texts, and with users where ``min_users`` is above 1.
        ngrams
            Lengths of the letter n-grams.
        min_users
            Leave out tokens that fewer users have seen, in a query of theirs or in an item shown to them.
        num_buckets
            The highest number that a token can have.
        """
        assert dataset.texts_by_query is not None, "checked when the dataset came in"
        if min_users < 1:
            raise RankPolicyError(f"min_users must be at least 1; got {min_users}.")
        lengths = tuple(map(int, ngrams))
        index_of: dict[str, int] = {}
        texts = dataset.texts_by_query
        query_text = [index_of.setdefault(text, len(index_of)) for text in texts.queries]
        used = np.unique(texts.of_item)
        text_of_distinct = np.zeros(len(texts.distinct), np.int64)
        text_of_distinct[used] = [index_of.setdefault(texts.distinct[index], len(index_of)) for index in used]
        words, words_of_text = _coded(map(tokenize, index_of))
        tokens, tokens_of_word = _coded(_ngrams(word, lengths) for word in words)
        is_kept, is_kept_ngram = np.ones(len(words), bool), np.ones(len(tokens), bool)
        if min_users > 1:
            users = user_of_query(dataset, min_users)
            seen_texts = np.concatenate([query_text, text_of_distinct[texts.of_item]])
            seen = distinct_pairs(seen_texts, np.concatenate([users, users[dataset.query_numbers]]), len(index_of))
            # The n-grams that a user has seen follow from the words; words repeat, so this counts less than the texts would.
            seen = parts_seen(*seen, words_of_text, len(words))
            is_kept = np.bincount(seen[0], minlength=len(words)) >= min_users
            seen = parts_seen(*seen, tokens_of_word, len(tokens))
            is_kept_ngram = np.bincount(seen[0], minlength=len(tokens)) >= min_users
        return cls(
            # Sorted, so that their order reveals nothing about the log.
            words=tuple(sorted(word for word, is_member in zip(words, is_kept, strict=True) if is_member)),
            ngrams=tuple(sorted(token for token, is_member in zip(tokens, is_kept_ngram, strict=True) if is_member)),
            lengths=lengths,
            num_buckets=int(num_buckets),
        )

    def __len__(self) -> int:
        """The number of numbers, including padding."""
        return 1 + min(len(self.words) + len(self.ngrams), self.num_buckets)

    def encode(self, text: str, *, max_tokens: int | None = None) -> list[int]:
        """The numbers of the words of a text, each followed by those of its n-grams.

        Parameters
        ----------
        text
            The text.
        max_tokens
            Read only so many words; None: all.
        """
        return self.encode_all([text], max_tokens=max_tokens)[0]

    def encode_all(self, texts: Iterable[str], *, max_tokens: int | None = None) -> list[list[int]]:
        """The numbers of many texts; each distinct word is looked up once.

        Parameters
        ----------
        texts
            The texts.
        max_tokens
            Read only so many words of each text; None: all.
        """
        numbers_of: dict[str, list[int]] = {}
        encoded = []
        for text in texts:
            numbers: list[int] = []
            for word in tokenize(text)[:max_tokens]:
                if word not in numbers_of:
                    numbers_of[word] = list(self._numbers(word))
                numbers += numbers_of[word]
            encoded.append(numbers)
        return encoded

    def _numbers(self, word: str) -> Iterator[int]:
        if word in self.number_of:
            yield self.number_of[word]
        for ngram in _ngrams(word, self.lengths):
            if ngram in self.number_of_ngram:
                yield self.number_of_ngram[ngram]

    def _bucket(self, token: str) -> int:
        # crc32 rather than hash(), which differs between processes.
        return 1 + zlib.crc32(token.encode()) % self.num_buckets


def _ngrams(word: str, lengths: Iterable[int]) -> Iterator[str]:
    """The n-grams of a word with boundary marks, except the one that is the whole word.

    >>> list(_ngrams("tea", [3])), list(_ngrams("a", [3]))
    (['#te', 'tea', 'ea#'], [])
    """
    marked = f"{_BOUNDARY}{word}{_BOUNDARY}"
    for length in lengths:
        if length < len(marked):
            for start in range(len(marked) - length + 1):
                yield marked[start : start + length]


def _coded(lists: Iterable[Iterable[str]]) -> tuple[list[str], list[NDArray[np.int64]]]:
    """The distinct tokens of all lists, and for each list the distinct indices of its tokens."""
    code_of: dict[str, int] = {}
    codes = [
        np.array(list({code_of.setdefault(token, len(code_of)) for token in tokens}), np.int64) for tokens in lists
    ]
    return list(code_of), codes
