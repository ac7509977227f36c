"""Small logs for tests."""

from itertools import product

import numpy as np

from rankpolicy.clicks import ClickLog, log_from_lists


def random_log(num_sessions: int = 300, *, num_queries: int = 3, num_items: int = 7, seed: int = 0) -> ClickLog:
    """Lists of one to six items in random order, clicked at random."""
    generator = np.random.default_rng(seed)
    queries = generator.integers(0, num_queries, num_sessions).tolist()
    items = [generator.permutation(num_items)[: generator.integers(1, 7)].tolist() for _ in queries]
    clicks = [(generator.random(len(shown)) < 0.35).astype(int).tolist() for shown in items]
    return log_from_lists(queries, items, clicks)


def every_click_vector(num_positions: int, *, query: object = 0) -> ClickLog:
    """One list with all 2^n ways to click on it."""
    vectors = [list(vector) for vector in product((0, 1), repeat=num_positions)]
    return log_from_lists([query] * len(vectors), [list(range(num_positions))] * len(vectors), vectors)
