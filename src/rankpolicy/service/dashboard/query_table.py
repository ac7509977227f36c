"""What was shown and clicked for each query, whatever policy showed it: estimates that all policies are compared by."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence

MOST_QUERIES = 500  # the least recently asked is forgotten
MOST_ITEMS = 200  # of one query; further ones are not counted
LAST_LISTS = 6
_PRIOR = 4.0  # observations at the click rate of the query that every item begins with


class ItemCounts:
    """Counts of an item for a query."""

    __slots__ = ("clicked", "group", "name", "seen", "shown")

    def __init__(self, name: str, group: str | None) -> None:
        self.name, self.group = name, group
        self.shown = 0
        self.seen = 0  # at or above the last click, or in a list without clicks
        self.clicked = 0


class QueryCounts:
    """Counts of a query."""

    __slots__ = ("clicked", "items", "last_lists", "lists", "query", "seen")

    def __init__(self, query: str) -> None:
        self.query = query
        self.lists = 0
        self.seen = 0
        self.clicked = 0
        self.items: dict[str, ItemCounts] = {}
        self.last_lists: deque[int] = deque(maxlen=LAST_LISTS)

    def item(self, name: str, group: str | None = None) -> ItemCounts | None:
        """The counts of an item; None where there are too many."""
        counts = self.items.get(name)
        if counts is None and len(self.items) < MOST_ITEMS:
            counts = self.items[name] = ItemCounts(name, group)
        elif counts is not None and group is not None:
            counts.group = group
        return counts

    def estimate(self, item: ItemCounts) -> float:
        """Estimated probability of a click on an item that is seen.

        (clicks + 4 r) / (times seen + 4), with r the click rate of the query: an item that was hardly seen is taken for an average one.

        >>> counts = QueryCounts("shoes")
        >>> a, b = counts.item("a"), counts.item("b")
        >>> counts.mark_shown([a, b]); counts.mark_clicked([a, b], 0, last=-1)
        >>> counts.estimate(a), counts.estimate(b)  # rate 1 / 1 of all that was seen
        (1.0, 1.0)
        """
        rate = self.clicked / self.seen if self.seen else 0.0
        return (item.clicked + _PRIOR * rate) / (item.seen + _PRIOR)

    def mark_shown(self, shown: Sequence[ItemCounts | None]) -> None:
        """Count a list without clicks."""
        self.lists += 1
        for item in shown:
            if item is not None:
                item.shown += 1
        self._see(shown, 1)

    def mark_clicked(self, shown: Sequence[ItemCounts | None], position: int, *, last: int) -> None:
        """Count the first click on an item of a list: what stands below the last click was not seen."""
        if last < 0:
            self._see(shown[position + 1 :], -1)
        elif position > last:
            self._see(shown[last + 1 : position + 1], 1)
        item = shown[position]
        if item is not None:
            item.clicked += 1
            self.clicked += 1

    def _see(self, items: Iterable[ItemCounts | None], number: int) -> None:
        for item in items:
            if item is not None:
                item.seen += number
                self.seen += number


class QueryTable:
    """The queries that were asked last."""

    def __init__(self) -> None:
        self._queries: OrderedDict[str, QueryCounts] = OrderedDict()

    def asked(self, query: str) -> QueryCounts:
        """The counts of a query that is asked now."""
        counts = self._queries.get(query)
        if counts is None:
            counts = self._queries[query] = QueryCounts(query)
            if len(self._queries) > MOST_QUERIES:
                self._queries.popitem(last=False)
        else:
            self._queries.move_to_end(query)
        return counts

    def known(self, query: str) -> QueryCounts | None:
        """The counts of a query; None where it is not among the last ones."""
        return self._queries.get(query)

    def all(self) -> list[QueryCounts]:
        """All of them, the most lists first."""
        return sorted(self._queries.values(), key=lambda counts: -counts.lists)
