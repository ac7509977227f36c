"""Lists whose window is open, remembered so that clicks on them and their lessons need not read them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rankpolicy.service.domain.records import StoredRanking

MOST_ITEMS = 200_000  # in all lists together, about 40 MB; of more, the oldest lists are read from the database when they are needed


class OpenLists:
    """What committed transactions have stored about lists that policies will learn from. After a failure it is cleared.

    Only the one server that writes a database may have it: another writer would change clicks without its knowing.
    """

    def __init__(self, most: int = MOST_ITEMS) -> None:
        self._most = most
        self.clear()

    def __len__(self) -> int:
        return len(self._lists)

    def clear(self) -> None:
        """Forget all lists."""
        self._lists: dict[int, tuple[bytes, StoredRanking]] = {}
        self._places: dict[str, int] = {}
        self._num_items = 0
        # When the next window ends; None where none is open, 0 where that is not known.
        self.next_deadline: int | None = 0

    def named(self, ranking_id: str) -> StoredRanking | None:
        """The list with this id; None where it is not remembered."""
        seq = self._places.get(ranking_id)
        return None if seq is None else self._lists[seq][1]

    def at(self, seq: int) -> tuple[bytes, StoredRanking] | None:
        """Clicks and list at a place in the log; None where it is not remembered."""
        return self._lists.get(seq)

    def follow(
        self,
        opened: Iterable[tuple[bytes, StoredRanking]],
        clicks: Mapping[int, bytes],
        closed: Iterable[int],
        next_deadline: int | None,
    ) -> None:
        """Know what a transaction has changed."""
        self.next_deadline = next_deadline
        for marks, ranking in opened:
            self._lists[ranking.seq] = marks, ranking
            self._places[ranking.shown.ranking_id] = ranking.seq
            self._num_items += len(marks)
        for seq, marks in clicks.items():
            if seq in self._lists:
                self._lists[seq] = marks, self._lists[seq][1]
        for seq in closed:
            self._drop(seq)
        while self._num_items > self._most:
            self._drop(next(iter(self._lists)))

    def _drop(self, seq: int) -> None:
        marks, ranking = self._lists.pop(seq, (b"", None))
        if ranking is not None:
            del self._places[ranking.shown.ranking_id]
            self._num_items -= len(marks)
