"""What users of the simulated search can ask and find: WikiQA's questions and the beginnings of its sentences."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.glove import WordVectors
from rankpolicy.types import RankPolicyError

Items = NDArray[np.int64]
NUM_AREAS = 8  # of meaning

# Words that questions are made with rather than about.
_COMMON = """
a about all an and are as at be been by can could did do does for from get had has have he her his how i if in into is it its long made
make many me mean much my name no not of on one or our out s she so some than that the their them then there these they this to up us use
used was way we were what when where which who whom whose why will with would you your
"""
COMMON_WORDS = frozenset(_COMMON.split())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Store:
    """Questions and items by number. Of the items of a question's own article, ``answers`` are right and ``others`` are not; ``alike`` are
    items of other articles in which a word of the question occurs."""

    texts: tuple[str, ...]  # (item,)
    vocabulary: tuple[str, ...]  # the content words of questions, by number
    area_of_word: Items  # (word,)
    questions: tuple[Items, ...]  # (question,) numbers of content words
    words_of_items: Items  # item * words + word for each word that an item has, sorted
    answers: tuple[Items, ...]  # (question,) each
    others: tuple[Items, ...]
    alike: tuple[Items, ...]

    def has_word(self, items: Items, words: Items) -> NDArray[np.bool_]:
        """Whether the items have the words, of shapes that go together."""
        wanted = items * len(self.vocabulary) + words
        places = np.minimum(np.searchsorted(self.words_of_items, wanted), len(self.words_of_items) - 1)
        return np.asarray(self.words_of_items[places] == wanted)


def content_words(text: str) -> tuple[str, ...]:
    """The words that a text is about, in their order, each once.

    >>> content_words("How are glacier caves formed? In a glacier.")
    ('glacier', 'caves', 'formed')
    """
    words = re.findall(r"\w+", text.lower())
    return tuple(dict.fromkeys(word for word in words if word not in COMMON_WORDS))


def areas_of(words: Sequence[str], vectors: WordVectors | None, *, num_rounds: int = 30) -> Items:
    """The area of each word (word,): clusters of word vectors by their cosine, k-means with a fixed start; words without a vector, and all
    without ``vectors``, are spread over the areas by a hash of their letters."""
    areas = np.array([zlib.crc32(word.encode()) % NUM_AREAS for word in words])
    place_of = {} if vectors is None else {word: place for place, word in enumerate(vectors.words)}
    known = np.array([word in place_of for word in words], bool)
    if vectors is None or known.sum() < NUM_AREAS:
        return areas
    points = vectors.vectors[[place_of[word] for word in words if word in place_of]].astype(np.float64)
    points = _of_length_one(points - points.mean(0))
    generator = np.random.default_rng(0)
    centres = points[generator.choice(len(points), NUM_AREAS, replace=False)]
    for _ in range(num_rounds):
        nearest = (points @ centres.T).argmax(1)
        sums = np.stack([points[nearest == area].sum(0) for area in range(NUM_AREAS)])
        centres = _of_length_one(np.where(sums.any(1, keepdims=True), sums, centres))
    areas[known] = nearest
    return areas


def _of_length_one(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def store_of(
    parts: Sequence[RankingDataset],
    vectors: WordVectors | None = None,
    *,
    words_of_an_item: int = 12,
    most_alike: int = 40,
) -> Store:
    """The store of questions with texts and labels, such as WikiQA's; an item is the beginning of a sentence, short as a subject line.

    Nobody asks a question that lacks an answer, two ``others`` or two ``alike``, but its sentences can be found. Of the items alike, those
    that share the most words are kept.
    """
    topics: list[Items] = []
    texts: list[str] = []
    labels: list[NDArray[np.float32]] = []
    questions = [content_words(text) for part in parts for text in _texts(part)[0]]
    for part in parts:
        topics.append(part.query_of_item + (topics[-1][-1] + 1 if topics else 0))
        texts += [" ".join(text.split()[:words_of_an_item]) for text in _texts(part)[1]]
        labels.append(part.labels)
    topic_of, is_answer = np.concatenate(topics), np.concatenate(labels) > 0
    words = tuple(frozenset(content_words(text)) for text in texts)
    items_with: dict[str, list[int]] = {}
    for item, of_item in enumerate(words):
        for word in sorted(of_item):
            items_with.setdefault(word, []).append(item)
    kept = []
    for topic, question in enumerate(questions):
        own = np.flatnonzero(topic_of == topic)
        shared = Counter(item for word in question for item in items_with.get(word, ()) if topic_of[item] != topic)
        alike = np.array([item for item, _ in shared.most_common(most_alike)], np.int64)
        answers, others = own[is_answer[own]], own[~is_answer[own]]
        if len(answers) and len(others) >= 2 and len(alike) >= 2:
            kept.append((question, answers, others, alike))
    if not kept:
        raise RankPolicyError(
            f"a store needs questions with an answer, two other items and two items alike; none of {len(questions)} has them."
        )
    words_of, answers_of, others_of, alike_of = zip(*kept, strict=True)
    vocabulary = sorted({word for question in words_of for word in question})
    number_of = {word: number for number, word in enumerate(vocabulary)}
    return Store(
        texts=tuple(texts),
        vocabulary=tuple(vocabulary),
        area_of_word=areas_of(vocabulary, vectors),
        questions=tuple(np.array([number_of[word] for word in question]) for question in words_of),
        words_of_items=np.array(
            sorted(
                item * len(vocabulary) + number_of[word]
                for item, of_item in enumerate(words)
                for word in of_item
                if word in number_of
            )
        ),
        answers=answers_of,
        others=others_of,
        alike=alike_of,
    )


def _texts(part: RankingDataset) -> tuple[Sequence[str], list[str]]:
    """Texts of the queries, and of the items one by one."""
    if part.texts is None:
        raise RankPolicyError("a store is made of texts; this dataset has none. Read it with read_wikiqa.")
    return part.texts.queries, [part.texts.item(item) for item in range(part.num_items)]
