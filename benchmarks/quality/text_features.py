"""Features of a query text and an item text: counts, BM25, TF-IDF, word vectors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

NAMES = (
    "query words",
    "item words",
    "shared words",
    "share of query words found",
    "share of item words found",
    "BM25",
    "TF-IDF cosine",
    "IDF found",
    "share of IDF found",
    "first query word found",
    "last query word found",
    "query as a phrase",
    "shared letter trigrams",
    "share of query trigrams found",
    "numbers found",
    "cosine of mean word vectors",
    "mean best word similarity",
    "least best word similarity",
)
_WORD = re.compile(r"[a-z]+|[0-9]+")
_K1, _B = 1.2, 0.75


def words_of(text: str) -> list[str]:
    """The words and numbers of a text, in lower case."""
    return _WORD.findall(text.lower())


def text_features(
    queries: Sequence[str], items: Sequence[str], vectors: Mapping[str, NDArray[np.float32]]
) -> NDArray[np.float32]:
    """One row of features per pair of texts (pair, feature); document frequencies are those of all distinct items."""
    distinct = {item: words_of(item) for item in set(items)}
    frequency = Counter(word for words in distinct.values() for word in set(words))
    mean_length = float(np.mean([len(words) for words in distinct.values()]))
    idf = {word: float(np.log1p((len(distinct) - n + 0.5) / (n + 0.5))) for word, n in frequency.items()}
    unseen = float(np.log1p((len(distinct) + 0.5) / 0.5))
    rows = [
        _row(words_of(query), distinct[item], idf, unseen, mean_length, vectors)
        for query, item in zip(queries, items, strict=True)
    ]
    return np.array(rows, np.float32)


def _row(
    query: list[str],
    item: list[str],
    idf: Mapping[str, float],
    unseen: float,
    mean_length: float,
    vectors: Mapping[str, NDArray[np.float32]],
) -> list[float]:
    counts, asked = Counter(item), Counter(query)
    found = [word for word in asked if word in counts]
    weight = {word: idf.get(word, unseen) for word in asked}
    length = _K1 * (1 - _B + _B * len(item) / mean_length)
    bm25 = sum(weight[w] * counts[w] * (_K1 + 1) / (counts[w] + length) for w in found)
    norm = np.sqrt(sum((n * weight[w]) ** 2 for w, n in asked.items()))
    norm *= np.sqrt(sum((n * idf.get(w, unseen)) ** 2 for w, n in counts.items()))
    product = sum(asked[w] * counts[w] * weight[w] ** 2 for w in found)
    trigrams, of_item = _trigrams(query), _trigrams(item)
    numbers = [word for word in asked if word.isdigit()]
    idf_found = sum(weight[w] for w in found)
    return [
        len(query),
        len(item),
        len(found),
        len(found) / max(1, len(asked)),
        len(found) / max(1, len(counts)),
        bm25,
        product / norm if norm > 0 else 0.0,
        idf_found,
        idf_found / max(1e-9, sum(weight.values())),
        float(bool(query) and query[0] in counts),
        float(bool(query) and query[-1] in counts),
        float(f" {' '.join(query)} " in f" {' '.join(item)} "),
        len(trigrams & of_item),
        len(trigrams & of_item) / max(1, len(trigrams)),
        sum(number in counts for number in numbers) / max(1, len(numbers)) if numbers else 0.5,
        *_similarities(query, item, vectors),
    ]


def _trigrams(words: Sequence[str]) -> set[str]:
    return {f"<{word}>"[start : start + 3] for word in words for start in range(len(word))}


def _similarities(
    query: Sequence[str], item: Sequence[str], vectors: Mapping[str, NDArray[np.float32]]
) -> tuple[float, float, float]:
    of_query = [vectors[word] for word in query if word in vectors]
    of_item = [vectors[word] for word in item if word in vectors]
    if not of_query or not of_item:
        return 0.0, 0.0, 0.0
    a, b = np.array(of_query), np.array(of_item)
    means = a.mean(0), b.mean(0)
    cosine = float(means[0] @ means[1] / (np.linalg.norm(means[0]) * np.linalg.norm(means[1]) + 1e-9))
    a /= np.linalg.norm(a, axis=1, keepdims=True) + 1e-9
    b /= np.linalg.norm(b, axis=1, keepdims=True) + 1e-9
    best = (a @ b.T).max(1)
    return cosine, float(best.mean()), float(best.min())
