"""A log of personal search that anyone can make again: texts of WikiQA, simulated side information, users with a known position bias.

The logs of the paper (Gmail, Drive) are private. Here users look for things in a store of short texts, as in a mailbox:

- A **query** is a question of which the user types some content words, each with probability 0.6: one to a few words, which differ from
  user to user. Some questions are asked far more often than others.
- **Six items** answer a session: a right answer (an arbitrary item in one session of ten), two other items of the same article, two of
  other articles that share a word with the question, and an arbitrary one. A text is the name of the folder that the item lies in, as in
  a path, and the beginning of a sentence.
- **Side information** of the item: age (long tailed, one in ten not known), kind, how often the user opened it before; of the query: hour,
  device, the user's team, and how often the user has clicked so far. Long tailed numbers are logged as log(1 + number).
- **Shown** is the order of a plain production ranker: share of the query's words found + recency + a little noise. One session in ten,
  marked in the log, is shown in random order; the bias can be estimated from these (Wang et al. 2016; the paper uses this correction).
- **Users** examine rank k with probability 1 / k (eta = 1) and click an examined item with the probability ``click_chance``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.reproductions.matching_cross.search_store import Items, Store

Array = NDArray[np.float64]

OTHER, ON_TOPIC, ANSWER = 0, 1, 2  # how well the text of an item answers the question
NUM_POSITIONS = 6
PROPENSITIES = 1.0 / np.arange(1, NUM_POSITIONS + 1)

KINDS, KIND_SHARES = ("mail", "document", "sheet", "photo"), (0.5, 0.25, 0.15, 0.1)
LOOK_UP, MIXED, FOLLOW = 0, 1, 2  # what a user is after
FOLDERS = (
    "archive",
    "budget",
    "contracts",
    "designs",
    "events",
    "hiring",
    "launch",
    "press",
    "research",
    "sales",
    "support",
    "travel",
)
NUM_TEAMS = 12
# A team works with four folders, of which the next team has three. Every third team is after the same.
IS_OWN = (np.arange(len(FOLDERS)) - np.arange(NUM_TEAMS)[:, None]) % len(FOLDERS) < 4  # (team, folder)
INTENT_OF_TEAM = np.arange(NUM_TEAMS) % 3
DEVICES = ("desktop", "phone")
SHARE_TYPED = 0.6  # of the words of a question
MISSING_AGES, MISSING_ANSWERS, RANDOMISED = 0.1, 0.1, 0.1  # shares of items, of sessions, of sessions

MATCH = np.array([0.0, 2.0, 4.0])  # by how well the text answers
TRUST_BY_KIND = np.array([1.0, 1.0, 0.6, 0.3])
TRUST_BY_INTENT = np.array([1.25, 0.75, 0.25])
TRUST_BY_FOLDER = np.array([0.4, 1.0])  # of others, of one's own
RECENCY_BY_INTENT = np.array([0.0, 2.0, 4.0])
RECENCY_BY_MATCH = np.array([0.3, 1.0, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Needs:
    """What decides whether an examined item is clicked; arrays (session, 1) of queries or (session, position) of items."""

    match: Items  # OTHER, ON_TOPIC or ANSWER
    kind: Items
    is_own: Items  # 1 where the item is in a folder of the user's team
    age: Array  # days, also where the log does not know them
    opens: Items
    intent: Items  # LOOK_UP, MIXED or FOLLOW
    device: Items
    hour: Items


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchLog:
    """Items shown, a row each, in the order of time and from the top of each list; and the truth, which only a simulator knows."""

    columns: Mapping[str, NDArray[Any]]  # (rows,) each: the click table
    relevance: Array  # (rows,) P(click | examined)


def recency(age: Array) -> Array:
    """1 for what is new, 1/2 after a week, 1 / (1 + age / 7 days)."""
    return 1.0 / (1.0 + age / 7.0)


def click_chance(needs: Needs) -> Array:
    """P(click | examined) = sigmoid(-3.5 + trust x match + recency's weight x recency + habit + occasion).

    - **trust x match**: an answer is worth 4, an item on the topic 2. Who looks something up knows its words, who follows what is going on
      types a rough one: trust 1.25, mixed 0.75, 0.25. What stands in a mail or document is what it is about; the words found for a sheet
      or a photo say less: 1, 1, 0.6, 0.3. Most people mean the things of their own team: 1 in its folders, 0.4 elsewhere.
    - **recency's weight** is 0 for who looks something up, mixed 2, 4 for who follows; 0.3 of that off the topic: nobody who wants the
      latest on one matter is served by the latest on another.
    - **habit** = 0.4 log(1 + opens): what was opened before is opened again.
    - **occasion**: sheets are hard to read on a phone (-1); documents are for work hours, photos for the evening (+0.5).

    The team is the same for all items of a query: it moves them only through products with what tells them apart, the match, the folder's
    name in the text, the age. These are the crosses the paper argues for; any network with a hidden layer can express them.
    """
    trust = TRUST_BY_INTENT[needs.intent] * TRUST_BY_KIND[needs.kind] * TRUST_BY_FOLDER[needs.is_own]
    weight_of_recency = RECENCY_BY_INTENT[needs.intent] * RECENCY_BY_MATCH[needs.match]
    is_work = (needs.hour >= 9) & (needs.hour < 17)
    document, sheet, photo = (needs.kind == KINDS.index(name) for name in ("document", "sheet", "photo"))
    occasion = 0.5 * (document & is_work) + 0.5 * (photo & (needs.hour >= 18)) - 1.0 * (sheet & (needs.device == 1))
    habit = 0.4 * np.log1p(needs.opens)
    logit = -3.5 + trust * MATCH[needs.match] + weight_of_recency * recency(needs.age) + habit + occasion
    return 1.0 / (1.0 + np.exp(-logit))


def simulate_search(store: Store, *, num_sessions: int, num_users: int = 2000, random_state: int) -> SearchLog:
    """A log of eight weeks. The same store and seed give the same log."""
    generator = np.random.default_rng(random_state)
    question = _draw_often_and_rare(generator, len(store.questions), num_sessions)
    items, match = _items_of(store, question, generator)
    queries = _typed(store, question, generator)

    times = np.sort(generator.uniform(0, 8 * 7 * 86400, num_sessions).round())
    user = _draw_often_and_rare(generator, num_users, num_sessions)
    team = generator.integers(0, NUM_TEAMS, num_users)[user]
    folder = generator.integers(0, len(FOLDERS), len(store.texts))
    filed = np.array([f"{FOLDERS[f]} {text}" for f, text in zip(folder, store.texts, strict=True)], dtype=object)
    intent = INTENT_OF_TEAM[team][:, None]
    is_own = IS_OWN[team[:, None], folder[items]].astype(np.int64)
    device = (generator.random((num_sessions, 1)) < 0.4).astype(np.int64)
    kind = generator.choice(len(KINDS), len(store.texts), p=KIND_SHARES)[items]
    age = np.exp(generator.normal(np.log(20.0), 1.7, items.shape))
    opens = generator.negative_binomial(0.5, 0.25, items.shape)
    hour = (times[:, None] // 3600 % 24).astype(np.int64)

    production = _share_found(store, queries, items) + recency(age) + generator.normal(0, 0.1, items.shape)
    is_randomised = generator.random(num_sessions) < RANDOMISED
    order = np.argsort(np.where(is_randomised[:, None], generator.random(items.shape), -production), axis=1)

    def shown(values: NDArray[Any]) -> NDArray[Any]:
        return np.take_along_axis(values, order, axis=1)

    chance = click_chance(
        Needs(
            match=shown(match),
            kind=shown(kind),
            is_own=shown(is_own),
            age=shown(age),
            opens=shown(opens),
            intent=intent,
            device=device,
            hour=hour,
        )
    )
    clicked = generator.random(items.shape) < PROPENSITIES * chance
    known_age = np.where(generator.random(items.shape) < MISSING_AGES, np.nan, shown(age))
    by_session = {
        "session": np.arange(num_sessions),
        "user": np.char.add("user", user.astype(str)),
        "timestamp": times,
        "query_text": np.array([" ".join(query) for query in queries], dtype=object),
        "hour": hour[:, 0],
        "device": np.array(DEVICES)[device[:, 0]],
        "team": np.char.add("team", team.astype(str)),
        "log_user_clicks": np.log1p(_clicks_before(user, clicked.sum(1))),
        "is_randomised": is_randomised,
    }
    by_item = {
        "item_text": filed[shown(items)],
        "position": np.broadcast_to(np.arange(1, NUM_POSITIONS + 1), items.shape),
        "log_age": np.log1p(known_age),
        "kind": np.array(KINDS)[shown(kind)],
        "log_opens": np.log1p(shown(opens)),
        "clicked": clicked.astype(np.int64),
    }
    columns = {name: np.repeat(values, NUM_POSITIONS) for name, values in by_session.items()}
    columns |= {name: np.ascontiguousarray(values).ravel() for name, values in by_item.items()}
    return SearchLog(columns=columns, relevance=chance.ravel())


def _draw_often_and_rare(generator: np.random.Generator, num: int, size: int) -> Items:
    """Numbers of which some come up often, by a power law: P(number) ~ 1 / (10 + its place in a random order)."""
    weights = 1.0 / (10.0 + generator.permutation(num))
    return generator.choice(num, size, p=weights / weights.sum())


def _items_of(store: Store, question: Items, generator: np.random.Generator) -> tuple[Items, Items]:
    """Items (session, slot), none twice in a session, and how well each answers."""
    items = np.empty((len(question), NUM_POSITIONS), np.int64)
    left = np.arange(len(question))
    while len(left):  # few draws hold an item twice: an arbitrary one that is there already
        asked = question[left]
        items[left] = np.column_stack(
            [
                _two_of(store.answers, asked, generator)[:, 0],
                _two_of(store.others, asked, generator),
                _two_of(store.alike, asked, generator),
                generator.integers(0, len(store.texts), len(left)),
            ]
        )
        has_none = generator.random(len(left)) < MISSING_ANSWERS
        items[left[has_none], 0] = generator.integers(0, len(store.texts), has_none.sum())
        in_order = np.sort(items[left], axis=1)
        left = left[(in_order[:, 1:] == in_order[:, :-1]).any(1)]
    match = np.full(items.shape, OTHER)
    for level, pools in ((ON_TOPIC, store.others), (ANSWER, store.answers)):
        topic = np.full(len(store.texts), -1)
        for number, pool in enumerate(pools):
            topic[pool] = number
        match[topic[items] == question[:, None]] = level
    return items, match


def _two_of(pools: tuple[Items, ...], question: Items, generator: np.random.Generator) -> Items:
    """Two different items (session, 2) of the pool of each question; the same twice where the pool has but one."""
    sizes = np.array([len(pool) for pool in pools])
    starts, size = (np.cumsum(sizes) - sizes)[question], sizes[question]
    first = generator.integers(0, size)
    second = (first + generator.integers(1, np.maximum(size, 2))) % size
    return np.concatenate(pools)[starts[:, None] + np.column_stack([first, second])]


def _typed(store: Store, question: Items, generator: np.random.Generator) -> list[tuple[str, ...]]:
    """The words of each session's query: each content word with probability 0.6, one at least."""
    typed = []
    for number in question.tolist():
        words = store.questions[number]
        kept = generator.random(len(words)) < SHARE_TYPED
        kept[generator.integers(len(words))] |= not kept.any()
        typed.append(tuple(word for word, is_kept in zip(words, kept.tolist(), strict=True) if is_kept))
    return typed


def _share_found(store: Store, queries: list[tuple[str, ...]], items: Items) -> Array:
    """Share of the query's words that occur in each item (session, slot)."""
    rows = zip(queries, items.tolist(), strict=True)
    return np.array([[sum(word in store.words[i] for word in query) / len(query) for i in row] for query, row in rows])


def _clicks_before(user: Items, clicks: Items) -> Items:
    """How often the user of each session had clicked before it (session,)."""
    order = np.argsort(user, kind="stable")
    before = np.cumsum(clicks[order]) - clicks[order]
    starts = np.searchsorted(user[order], user[order])
    found = np.empty_like(before)
    found[order] = before - before[starts]
    return found
