"""A small shop whose customers are dependent-click users with known tastes."""

from __future__ import annotations

import random
from dataclasses import dataclass

CUTOFF = 5
ITEMS_PER_QUERY = 14
GROUPS = ("marketplace", "own brand")
_QUERIES = {
    "red shoes": ("sneaker", "loafer", "sandal", "boot", "pump", "slipper", "clog"),
    "garden chair": ("deck chair", "bench", "stool", "recliner", "swing", "folding chair", "rocker"),
    "coffee": ("espresso", "filter", "decaf", "capsules", "beans", "instant", "cold brew"),
    "rain jacket": ("poncho", "parka", "shell", "trench", "windbreaker", "cape", "anorak"),
    "desk lamp": ("clamp lamp", "reading light", "ring light", "lantern", "spot", "bar light", "globe"),
    "notebook": ("dotted", "ruled", "blank", "squared", "planner", "sketchbook", "pocket"),
    "running watch": ("gps", "solar", "classic", "slim", "rugged", "kids", "hybrid"),
    "olive oil": ("mild", "fruity", "organic", "spray", "truffle", "lemon", "chili"),
}
LEAVES = (0.9, 0.8, 0.7, 0.6, 0.5)  # probability that a click at each position is the last


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldItem:
    """An item of the shop."""

    name: str
    group: str
    attraction: float


class World:
    """Queries, their items, and users who click (dependent click model, Guo et al. 2009).

    A user looks at the items from the first on, clicks an item with the probability ``attraction``, and leaves after a click with a
    probability that depends on the position.

    Parameters
    ----------
    seed
        Of the tastes.
    """

    def __init__(self, seed: int = 0) -> None:
        generator = random.Random(seed)
        self.items: dict[str, list[WorldItem]] = {}
        for query, words in _QUERIES.items():
            names = [f"{group.split()[0]} {word}" for group in GROUPS for word in words]
            good = set(generator.sample(names[:7], 2) + generator.sample(names[7:], 1))
            items = [
                WorldItem(
                    name=name,
                    group=GROUPS[number >= 7],
                    attraction=generator.uniform(0.3, 0.5) if name in good else generator.uniform(0.01, 0.07),
                )
                for number, name in enumerate(names)
            ]
            generator.shuffle(items)  # the shop's own order knows nothing
            self.items[query] = items
        self._popularity = [1 / (1 + rank) ** 0.7 for rank in range(len(self.items))]

    def query(self, user: random.Random) -> str:
        """A query; some are asked more often than others.

        Parameters
        ----------
        user
            Source of randomness.
        """
        return user.choices(list(self.items), self._popularity)[0]

    def clicks(self, query: str, shown: list[str], user: random.Random) -> list[str]:
        """What a user clicks of a list, in order.

        Parameters
        ----------
        query
            What was asked.
        shown
            Names of the items, best first.
        user
            Source of randomness.
        """
        attraction = {item.name: item.attraction for item in self.items[query]}
        clicked = []
        for position, name in enumerate(shown):
            if user.random() < attraction.get(name, 0.0):
                clicked.append(name)
                if user.random() < LEAVES[min(position, len(LEAVES) - 1)]:
                    break
        return clicked

    def best_share(self, query: str, cutoff: int = CUTOFF) -> float:
        """The probability of at least one click on the best list.

        Parameters
        ----------
        query
            What is asked.
        cutoff
            Length of the list.

        >>> world = World()
        >>> all(world.best_share(query) > 0.7 for query in world.items)
        True
        """
        missed = 1.0
        for item in sorted(self.items[query], key=lambda item: -item.attraction)[:cutoff]:
            missed *= 1 - item.attraction
        return 1 - missed
