"""A log of product search that anyone can make again: texts and grades of people, simulated shoppers with a known position bias.

The logs of the paper (Gmail, Drive) are private. Here shoppers look for products of a hardware store (Home Depot's contest data). How
well a product answers a query was graded by people, so it is of no network's form. The rest is this process:

- **Queries**: the 7,880 query texts with five graded products, some asked far more often than others. Of the texts 70 % are asked at any
  time, 15 % in the validation part only and 15 % in the test part only: half of the sessions of these two parts ask a text that no
  training session has.
- **Seven products** answer a session: five of those that were graded for the query, drawn at random, and two arbitrary ones (grade 0).
- **Side information** of a product: log price; stars (15 % of the products have none); log reviews; days until it is there (0: in the store
  now, 60 % of the products); whether the shopper has bought its brand before. Of the session: hour; the shopper's kind (30 % trade, 70 %
  home); the price level the shopper usually buys at (low, middle, high).
- **Shown** is the order of a weak production ranker: share of the query's words found in the title + popularity (log reviews, standardised)
  / 2 + noise. One session in ten, marked in the log, is shown in random order; the bias can be estimated from these.
- **Shoppers** examine rank k with probability 1 / k and click an examined product with the probability ``click_chance``.

Why so: shoppers of the trade know what they need and take nothing else, while at home something close will do; a price far from the usual
one, bad stars, and a wait when work is going on each put some shoppers off; who bought a brand before buys it again. Each condition is a
factor, as if a shopper checked one after the other. Popular products are shown first without being more relevant, which is the bias that
clicks as they are would teach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.click_table.list_columns import Shown, SideColumns
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.texts import Texts
from reproductions.matching_cross.product_store import Array, Items, Store, words_of

NUM_GRADED, NUM_OTHERS = 5, 2  # products of a list: graded for the query, and arbitrary ones
NUM_POSITIONS = NUM_GRADED + NUM_OTHERS
PROPENSITIES = 1.0 / np.arange(1, NUM_POSITIONS + 1)
PARTS = (0.8, 0.1, 0.1)  # of the sessions, by time: training, validation, test
SHARE_OF_TEXTS = (
    0.7,
    0.15,
    0.15,
)  # of the query texts: asked at any time, in the validation part only, in the test part only
SHARE_OF_NEW = 0.5  # of the sessions of the validation and the test part: those that ask a text of that part only
NUM_USERS, RANDOMISED = 4000, 0.1
NUM_SECONDS = 8 * 7 * 86400  # eight weeks

HOME, TRADE = 0, 1
KINDS, SHARE_OF_TRADE = ("home", "trade"), 0.3
LEVELS, WISHES = (
    ("low", "middle", "high"),
    np.array([0.15, 0.5, 0.85]),
)  # of prices; the share of products that cost less
GRADES = np.array([0.0, 1.0, 2.0, 3.0])  # 0: an arbitrary product
ATTRACTION = np.array([[0.03, 0.06, 0.35, 0.70], [0.01, 0.02, 0.10, 0.80]])  # (kind, grade)
NO_STARS, TRUST_WITHOUT_STARS = 0.15, 0.6
BOUGHT, AGAIN = 0.1, 1.3
MOST = 0.95


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Needs:
    """What decides whether an examined product is clicked; arrays (session, 1) of sessions or (session, slot) of products."""

    grade: Array  # 0 for an arbitrary product
    price: Array  # the share of products that cost less
    stars: Array  # NaN: none
    days: Items
    has_bought: NDArray[np.bool_]
    kind: Items  # HOME or TRADE
    level: Items
    hour: Items


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchLog:
    """Sessions in the order of time, each with its products from the top; and the truth, which only a simulator knows."""

    clicks: RankingDataset  # labels: clicks
    relevance: Array  # (items,) P(click | examined)
    grades: Array  # (items,)
    is_randomised: NDArray[np.bool_]  # (sessions,)
    is_new: NDArray[np.bool_]  # (sessions,) whether no training session may ask the text

    def part(self, number: int) -> NDArray[np.int64]:
        """The sessions of the training (0), validation (1) or test part (2)."""
        ends = (np.cumsum((0.0, *PARTS)) * len(self.is_new)).round().astype(np.int64)
        return np.arange(ends[number], ends[number + 1])


def click_chance(needs: Needs) -> Array:
    """P(click | examined) = attraction x price x trust x wait x habit, at most 0.95.

    - **attraction** by grade 0, 1, 2, 3: 0.03, 0.06, 0.35, 0.70 at home and 0.01, 0.02, 0.10, 0.80 in the trade, linear between grades.
    - **price** = 1 - 0.7 |share of products that cost less - the level's 0.15, 0.5 or 0.85|.
    - **trust** = sigmoid(2 (stars - 3.5)), 0.6 without stars.
    - **wait** = 0.9 for what is not in the store; 0.3 for the trade between 6 and 15 o'clock.
    - **habit** = 1.3 where the brand was bought before.
    """
    attraction = np.where(
        needs.kind == TRADE,
        np.interp(needs.grade, GRADES, ATTRACTION[TRADE]),
        np.interp(needs.grade, GRADES, ATTRACTION[HOME]),
    )
    price = 1 - 0.7 * np.abs(needs.price - WISHES[needs.level])
    trust = np.where(np.isnan(needs.stars), TRUST_WITHOUT_STARS, 1 / (1 + np.exp(-2 * (needs.stars - 3.5))))
    is_urgent = (needs.kind == TRADE) & (needs.hour >= 6) & (needs.hour < 15)
    wait = np.where(needs.days == 0, 1.0, np.where(is_urgent, 0.3, 0.9))
    habit = np.where(needs.has_bought, AGAIN, 1.0)
    return np.asarray(np.minimum(attraction * price * trust * wait * habit, MOST))


def simulate_search(store: Store, *, num_sessions: int, num_users: int = NUM_USERS, random_state: int) -> SearchLog:
    """A log of eight weeks. The same store and seed give the same log."""
    generator = np.random.default_rng(random_state)
    query, is_new = _asked(store, num_sessions, generator)
    items, grades = _lists(store, query, generator)

    num_products, shape = len(store.titles), items.shape
    price = generator.permutation(num_products) / num_products
    log_price = np.empty(num_products)
    log_price[np.argsort(price)] = 3.0 + 1.2 * np.sort(generator.normal(size=num_products))
    stars = np.clip(generator.normal(4.2, 0.6, num_products), 1, 5).round(1)
    stars[generator.random(num_products) < NO_STARS] = np.nan
    popularity = generator.normal(size=num_products)  # log reviews, standardised
    days = np.where(generator.random(num_products) < 0.6, 0, generator.integers(2, 11, num_products))

    times = np.sort(generator.uniform(0, NUM_SECONDS, num_sessions))
    hour = (times[:, None] // 3600 % 24).astype(np.int64)
    user = _often_and_rare(generator, np.arange(num_users), num_sessions)
    kind = (generator.random(num_users) < SHARE_OF_TRADE).astype(np.int64)[user][:, None]
    level = generator.integers(0, len(LEVELS), num_users)[user][:, None]
    brands = store.brands()
    has_bought = (generator.random((num_users, brands.max() + 1)) < BOUGHT)[user[:, None], brands[items]]

    production = _share_found(store, query, items) + popularity[items] / 2 + generator.normal(0, 0.1, shape)
    is_randomised = generator.random(num_sessions) < RANDOMISED
    order = np.argsort(np.where(is_randomised[:, None], generator.random(shape), -production), axis=1)
    items, grades = np.take_along_axis(items, order, axis=1), np.take_along_axis(grades, order, axis=1)
    has_bought = np.take_along_axis(has_bought, order, axis=1)

    chance = click_chance(
        Needs(
            grade=grades,
            price=price[items],
            stars=stars[items],
            days=days[items],
            has_bought=has_bought,
            kind=kind,
            level=level,
            hour=hour,
        )
    )
    clicked = generator.random(shape) < PROPENSITIES * chance
    flat = items.ravel()

    def of_session(values: NDArray[np.generic]) -> NDArray[np.generic]:
        return np.repeat(values.ravel(), NUM_POSITIONS)

    numbers = {
        "log_price": log_price[flat],
        "stars": stars[flat],
        "log_reviews": 3.0 + 1.5 * popularity[flat],
        "days": days[flat],
        "has_bought": has_bought.ravel(),
        "hour": of_session(hour),
    }
    clicks = RankingDataset(
        features_by_query=np.empty((len(flat), 0), np.float32),
        labels_by_query=clicked.ravel().astype(np.float32),
        label_kind="clicks",
        query_offsets=np.arange(0, len(flat) + 1, NUM_POSITIONS),
        query_ids=np.arange(num_sessions).astype(str),
        source_rows_by_query=np.arange(len(flat)),
        texts_by_query=Texts(
            queries=tuple(np.array(store.queries, dtype=object)[query].tolist()), distinct=store.titles, of_item=flat
        ),
        side_by_query=SideColumns(
            numbers={name: values.astype(np.float32) for name, values in numbers.items()},
            categories={
                "kind": of_session(np.array(KINDS, dtype=object)[kind]),
                "level": of_session(np.array(LEVELS, dtype=object)[level]),
            },
        ),
        shown_by_query=Shown(
            ranks=np.tile(np.arange(1, NUM_POSITIONS + 1), num_sessions),
            users=np.char.add("user", user.astype(str)),
            times=times,
        ),
    )
    return SearchLog(
        clicks=clicks, relevance=chance.ravel(), grades=grades.ravel(), is_randomised=is_randomised, is_new=is_new
    )


def _asked(store: Store, num_sessions: int, generator: np.random.Generator) -> tuple[Items, NDArray[np.bool_]]:
    """The query of each session (session,), and whether its text is asked in the session's part only."""
    shuffled = generator.permutation(len(store.queries))
    any_time, of_valid, of_test = np.split(
        shuffled, (np.cumsum(SHARE_OF_TEXTS[:2]) * len(shuffled)).round().astype(np.int64)
    )
    query = _often_and_rare(generator, any_time, num_sessions)
    is_new = generator.random(num_sessions) < SHARE_OF_NEW
    ends = (np.cumsum(PARTS) * num_sessions).round().astype(np.int64)
    is_new[: ends[0]] = False
    for texts, first, end in ((of_valid, ends[0], ends[1]), (of_test, ends[1], ends[2])):
        places = first + np.flatnonzero(is_new[first:end])
        query[places] = _often_and_rare(generator, texts, len(places))
    return query, is_new


def _often_and_rare(generator: np.random.Generator, choices: Items, size: int) -> Items:
    """Draws of which some come up often, by a power law: P(choice) ~ 1 / (10 + its place in a random order)."""
    weights = 1.0 / (10.0 + generator.permutation(len(choices)))
    return generator.choice(choices, size, p=weights / weights.sum())


def _lists(store: Store, query: Items, generator: np.random.Generator) -> tuple[Items, Array]:
    """Products (session, slot), none twice in a session, and their grades."""
    sizes = np.array([len(products) for products in store.graded])
    starts, longest = np.cumsum(sizes) - sizes, int(sizes.max())
    # The graded products of a session in a random order; places past their number come last.
    keys = generator.random((len(query), longest))
    keys[np.arange(longest) >= sizes[query][:, None]] = 2.0
    rows = starts[query][:, None] + np.argsort(keys, axis=1)[:, :NUM_GRADED]
    items = np.empty((len(query), NUM_POSITIONS), np.int64)
    items[:, :NUM_GRADED] = np.concatenate(store.graded)[rows]
    pairs = np.sort(np.repeat(np.arange(len(sizes)), sizes) * len(store.titles) + np.concatenate(store.graded))
    left = np.arange(len(query))
    while len(left):  # few draws hold a product twice, or one that was graded
        items[left, NUM_GRADED:] = generator.integers(0, len(store.titles), (len(left), NUM_OTHERS))
        others = items[left, NUM_GRADED:]
        is_graded = np.isin(query[left][:, None] * len(store.titles) + others, pairs).any(1)
        in_order = np.sort(others, axis=1)
        left = left[is_graded | (in_order[:, 1:] == in_order[:, :-1]).any(1)]
    grades = np.zeros(items.shape)
    grades[:, :NUM_GRADED] = np.concatenate(store.grades)[rows]
    return items, grades


def _share_found(store: Store, query: Items, items: Items) -> Array:
    """The share of the query's words that each title has (session, slot); pairs repeat, so each is counted once."""
    pairs, of_slot = np.unique(query[:, None] * len(store.titles) + items, return_inverse=True)
    asked, titles = np.divmod(pairs, len(store.titles))
    words_of_query = {number: words_of(store.queries[number]) for number in np.unique(asked).tolist()}
    words_of_title = {number: words_of(store.titles[number]) for number in np.unique(titles).tolist()}
    shares = [
        len(words_of_query[number] & words_of_title[title]) / max(len(words_of_query[number]), 1)
        for number, title in zip(asked.tolist(), titles.tolist(), strict=True)
    ]
    return np.asarray(np.array(shares)[of_slot.reshape(items.shape)])
