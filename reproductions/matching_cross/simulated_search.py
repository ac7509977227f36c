"""A log of personal search that anyone can make again: texts of WikiQA, simulated side information, users with a known position bias.

The logs of the paper (Gmail, Drive) are private. Here users look for things in a store of short texts, as in a mailbox:

- A **query** is a question of which the user types some content words, each with probability 0.6: one to a few words, which differ from
  user to user. Some questions are asked far more often than others. Words fall into eight areas of meaning.
- **Six items** answer a session: a right answer (an arbitrary item in one session of ten), two other items of the same article, two of
  other articles that share a word with the question, and an arbitrary one. A text is the beginning of a sentence.
- **Side information** of the item: age (long tailed, one in ten not known), kind, how often the user opened it before; of the query: hour,
  device, the user's team, and how often the user has clicked so far. Long tailed numbers are logged as log(1 + number).
- **Shown** is the order of a plain production ranker, rather the newest first, as mailboxes have it: 3 recency + share of the query's words
  found + a little noise. One session in ten, marked in the log, is shown in random order; the bias can be estimated from these (Wang et al.
  2016; the paper uses this correction).
- **Users** examine rank k with probability 1 / k (eta = 1) and click an examined item with the probability ``click_chance``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproductions.matching_cross.search_store import NUM_AREAS, Items, Store

Array = NDArray[np.float64]

OTHER, ON_TOPIC, ANSWER = 0, 1, 2  # how well the text of an item answers the question
NUM_POSITIONS = 6
PROPENSITIES = 1.0 / np.arange(1, NUM_POSITIONS + 1)

KINDS, KIND_SHARES = ("mail", "document", "sheet", "photo"), (0.5, 0.25, 0.15, 0.1)
LOOK_UP, MIXED, FOLLOW = 0, 1, 2  # what a user is after
NUM_TEAMS = 12
# A team is at home in three areas, of which the next team has two. Every third team is after the same.
IS_OWN = (np.arange(NUM_AREAS) - np.arange(NUM_TEAMS)[:, None]) % NUM_AREAS < 3  # (team, area)
INTENT_OF_TEAM = np.arange(NUM_TEAMS) % 3
DEVICES = ("desktop", "phone")
SHARE_TYPED = 0.6  # of the words of a question
MISSING_AGES, MISSING_ANSWERS, RANDOMISED = 0.1, 0.1, 0.1  # shares of items, of sessions, of sessions

MATCH, TERMS = (
    np.array([0.0, 0.5, 1.0]),
    9.0,
)  # by how well the text answers; of a query whose words are all terms that the item has
TRUST_BY_KIND = np.array([1.0, 1.0, 0.6, 0.3])
RECENCY_BY_INTENT = np.array([0.0, 1.0, 2.0])
RECENCY_BY_MATCH = np.array([0.3, 1.0, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Typed:
    """The words of the queries of all sessions, in their order."""

    session: Items  # (typed word,)
    word: Items  # (typed word,)
    num_sessions: int

    def texts(self, store: Store) -> NDArray[Any]:
        """(session,)"""
        words = np.split(np.array(store.vocabulary, dtype=object)[self.word], np.flatnonzero(np.diff(self.session)) + 1)
        return np.array([" ".join(of_session) for of_session in words], dtype=object)

    def share_found(self, store: Store, items: Items, *, counted: NDArray[np.bool_] | None = None) -> Array:
        """Share of the query's words that each item (session, slot) has; only ``counted`` ones (typed word,) where it is given."""
        found = store.has_word(items[self.session], self.word[:, None])
        if counted is not None:
            found &= counted[:, None]
        sums = [np.bincount(self.session, of_slot, self.num_sessions) for of_slot in found.T]
        return np.column_stack(sums) / np.bincount(self.session, minlength=self.num_sessions)[:, None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Needs:
    """What decides whether an examined item is clicked; arrays (session, 1) of queries or (session, position) of items."""

    match: Items  # OTHER, ON_TOPIC or ANSWER
    kind: Items
    terms: Array  # share of the query's words that the item has and that are terms of the user's team
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
    """P(click | examined) = sigmoid(-3.5 + trust x (match + 9 terms) + recency's weight x recency + habit + occasion).

    - **match**: an answer is worth 1, an item on the topic 0.5.
    - **terms**: people search by the terms of their trade and type other words roughly. A word counts where the item has it and it is of an
      area in which the user's team is at home: one of three words is worth 3. The same query so means other items to another team.
    - **trust**: what stands in a mail or document is what it is about; the words found for a sheet or a photo say less: 1, 1, 0.6, 0.3.
    - **recency's weight** is 0 for who looks something up, mixed 1, 2 for who follows what is going on; 0.3 of that off the topic: nobody
      who wants the latest on one matter is served by the latest on another.
    - **habit** = 0.4 log(1 + opens): what was opened before is opened again.
    - **occasion**: sheets are hard to read on a phone (-1); documents are for work hours, photos for the evening (+0.5).

    The team is the same for all items of a query: it moves them only through products with what tells them apart, the words that match and
    the age. These are the crosses the paper argues for; any network with a hidden layer can express them.
    """
    weight_of_recency = RECENCY_BY_INTENT[needs.intent] * RECENCY_BY_MATCH[needs.match]
    is_work = (needs.hour >= 9) & (needs.hour < 17)
    document, sheet, photo = (needs.kind == KINDS.index(name) for name in ("document", "sheet", "photo"))
    occasion = 0.5 * (document & is_work) + 0.5 * (photo & (needs.hour >= 18)) - 1.0 * (sheet & (needs.device == 1))
    habit = 0.4 * np.log1p(needs.opens)
    text = TRUST_BY_KIND[needs.kind] * (MATCH[needs.match] + TERMS * needs.terms)
    logit = -3.5 + text + weight_of_recency * recency(needs.age) + habit + occasion
    return np.asarray(1.0 / (1.0 + np.exp(-logit)))


def simulate_search(store: Store, *, num_sessions: int, num_users: int = 2000, random_state: int) -> SearchLog:
    """A log of eight weeks. The same store and seed give the same log."""
    generator = np.random.default_rng(random_state)
    question = _draw_often_and_rare(generator, len(store.questions), num_sessions)
    items, match = _items_of(store, question, generator)
    typed = _typed(store, question, generator)

    times = np.sort(generator.uniform(0, 8 * 7 * 86400, num_sessions).round())
    user = _draw_often_and_rare(generator, num_users, num_sessions)
    team = generator.integers(0, NUM_TEAMS, num_users)[user]
    intent = INTENT_OF_TEAM[team][:, None]
    is_term = IS_OWN[team[typed.session], store.area_of_word[typed.word]]
    device = (generator.random((num_sessions, 1)) < 0.4).astype(np.int64)
    kind = generator.choice(len(KINDS), len(store.texts), p=KIND_SHARES)[items]
    age = np.exp(generator.normal(np.log(20.0), 1.7, items.shape))
    opens = generator.negative_binomial(0.5, 0.25, items.shape)
    hour = (times[:, None] // 3600 % 24).astype(np.int64)

    production = 3 * recency(age) + typed.share_found(store, items) + generator.normal(0, 0.1, items.shape)
    is_randomised = generator.random(num_sessions) < RANDOMISED
    order = np.argsort(np.where(is_randomised[:, None], generator.random(items.shape), -production), axis=1)

    def shown(values: NDArray[Any]) -> NDArray[Any]:
        return np.take_along_axis(values, order, axis=1)

    chance = click_chance(
        Needs(
            match=shown(match),
            kind=shown(kind),
            terms=shown(typed.share_found(store, items, counted=is_term)),
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
        "query_text": typed.texts(store),
        "hour": hour[:, 0],
        "device": np.array(DEVICES)[device[:, 0]],
        "team": np.char.add("team", team.astype(str)),
        "log_user_clicks": np.log1p(_clicks_before(user, clicked.sum(1))),
        "is_randomised": is_randomised,
    }
    by_item = {
        "item_text": np.array(store.texts, dtype=object)[shown(items)],
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
    return np.asarray(np.concatenate(pools)[starts[:, None] + np.column_stack([first, second])])


def _typed(store: Store, question: Items, generator: np.random.Generator) -> Typed:
    """Each word of each session's question with probability 0.6, one at least."""
    sizes = np.array([len(words) for words in store.questions])
    starts, size = (np.cumsum(sizes) - sizes)[question], sizes[question]
    session = np.repeat(np.arange(len(question)), size)
    place = np.arange(len(session)) - np.repeat(np.cumsum(size) - size, size)
    kept = generator.random(len(session)) < SHARE_TYPED
    instead = generator.integers(0, size)
    kept |= (np.bincount(session, kept, len(question)) == 0)[session] & (place == instead[session])
    words = np.concatenate(store.questions)[starts[session] + place]
    return Typed(session=session[kept], word=words[kept], num_sessions=len(question))


def _clicks_before(user: Items, clicks: Items) -> Items:
    """How often the user of each session had clicked before it (session,)."""
    order = np.argsort(user, kind="stable")
    before = np.cumsum(clicks[order]) - clicks[order]
    starts = np.searchsorted(user[order], user[order])
    found = np.empty_like(before)
    found[order] = before - before[starts]
    return found
