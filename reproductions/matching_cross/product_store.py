"""What shoppers of the simulated search can ask and find: query texts and product titles of Home Depot with human grades."""

from __future__ import annotations

import csv
import html
import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

Items = NDArray[np.int64]
Array = NDArray[np.float64]
FILE = "train.csv.zst"
NEEDED_COLUMNS = ("product_title", "search_term", "relevance")
LEAST_GRADED = 5  # items of a query that is asked


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Store:
    """Queries and products by number; of each query the products that people graded, from 1 (not relevant) to 3 (perfect match)."""

    queries: tuple[str, ...]
    titles: tuple[str, ...]  # (product,) all different
    graded: tuple[Items, ...]  # (query,) products
    grades: tuple[Array, ...]  # (query,) grades of these products

    def brands(self) -> Items:
        """The brand of each product (product,): the number of the first word of its title."""
        return np.unique([title.split()[0].lower() for title in self.titles], return_inverse=True)[1]

    def first(self, num_queries: int) -> Store:
        """The first queries and the products that were graded for them."""
        products, places = np.unique(np.concatenate(self.graded[:num_queries]), return_inverse=True)
        sizes = [len(graded) for graded in self.graded[:num_queries]]
        return Store(
            queries=self.queries[:num_queries],
            titles=tuple(self.titles[product] for product in products),
            graded=tuple(np.split(places, np.cumsum(sizes)[:-1])),
            grades=self.grades[:num_queries],
        )


def words_of(text: str) -> frozenset[str]:
    """The distinct words of a text.

    >>> sorted(words_of("Angle bracket, 12-Gauge"))
    ['12', 'angle', 'bracket', 'gauge']
    """
    return frozenset(re.findall(r"\w+", text.lower()))


def read_store(folder: Path) -> Store:
    """The store of Home Depot's contest data, ``train.csv.zst`` (latin-1)."""
    stream = require("pyarrow", "Home Depot's data").input_stream(str(folder / FILE), compression="zstd")
    rows = csv.DictReader(io.StringIO(stream.read().decode("latin-1")))
    if not set(NEEDED_COLUMNS) <= set(rows.fieldnames or ()):
        raise RankPolicyError(
            f"{folder / FILE} must have the columns {', '.join(NEEDED_COLUMNS)}; got {rows.fieldnames}."
        )
    return store_of([(row["search_term"], row["product_title"], float(row["relevance"])) for row in rows])


def store_of(pairs: list[tuple[str, str, float]], *, least_graded: int = LEAST_GRADED) -> Store:
    """The store of (query, title, grade). Titles that are alike are one product, graded by the mean.

    Nobody asks a query with fewer than ``least_graded`` products, but its products can be shown.
    """
    grades_of: dict[str, dict[int, list[float]]] = {}
    product_of: dict[str, int] = {}
    for query, title, grade in pairs:
        product = product_of.setdefault(" ".join(html.unescape(title).split()), len(product_of))
        grades_of.setdefault(" ".join(query.lower().split()), {}).setdefault(product, []).append(grade)
    asked = {query: by_product for query, by_product in grades_of.items() if len(by_product) >= least_graded}
    if not asked:
        raise RankPolicyError(
            f"a store needs queries with {least_graded} graded products; none of {len(grades_of)} has."
        )
    return Store(
        queries=tuple(asked),
        titles=tuple(product_of),
        graded=tuple(np.array(list(by_product)) for by_product in asked.values()),
        grades=tuple(np.array([np.mean(grades) for grades in by_product.values()]) for by_product in asked.values()),
    )
