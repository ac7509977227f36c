"""Lists of simulated bandits on a GPU: how items are placed, how a user walks down a list, what its clicks reveal.

A list is the position of every item (item,), -1 for items that are not shown; clicks are the bits of a number.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rankpolicy.kernels.bandits import memory
from rankpolicy.kernels.triton.bandit_indices import USER, random_bits, uniform

_FIRST_CLICK, _WHOLE_LIST = tl.constexpr(memory.FIRST_CLICK), tl.constexpr(memory.WHOLE_LIST)


@triton.jit
def largest(value, is_left, tie_bits, places, SIZE: tl.constexpr):
    """Where the largest value stands among the places that are left; one of the equal largest at random."""
    own = tl.where(is_left, value, float("-inf"))
    key = (tie_bits >> 1).to(tl.int32) // SIZE * SIZE + places
    return tl.max(tl.where(is_left & (own == tl.max(own, 0)), key, -1), 0) % SIZE


@triton.jit
def place_largest(value, is_available, tie_bits, items, length, ITEMS: tl.constexpr):
    """The list of the available items of the largest values, largest first, equal ones in random order."""
    position_of = tl.full((ITEMS,), -1, tl.int32)
    for k in range(length):
        winner = largest(value, is_available & (position_of < 0), tie_bits, items, ITEMS)
        position_of = tl.where(items == winner, k, position_of)
    return position_of


@triton.jit
def walk_list(
    position_of, items, seed, run, step, attraction, after_click, rewards, examination, after_skip, length, width, num_columns,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """The clicks of a user, the first and the last of them (counted from 1, 0 for none), and the expected reward of the list.

    kernels/clicks/walk.py is the specification.
    """
    columns = tl.arange(0, COLUMNS)
    is_walking = tl.cast(1, tl.int32)
    first_click = tl.cast(0, tl.int32)
    last_click = tl.cast(0, tl.int32)
    marks = tl.cast(0, tl.int64)
    reached = tl.where(columns == 0, 1.0, 0.0).to(tl.float64)
    reward = tl.cast(0.0, tl.float64)
    for k in range(length):
        item = tl.sum(tl.where(position_of == k, items, 0), 0)
        a = tl.load(attraction + item)
        go_on = tl.load(after_click + item * width + k)
        worth = tl.load(rewards + item * width + k)
        click_bits, go_bits, _third, _fourth = random_bits(seed, run, step, USER, tl.cast(k, tl.int32))
        e = tl.load(examination + k * num_columns + tl.minimum(last_click, num_columns - 1))
        is_click = (is_walking != 0) & (uniform(click_bits) < e * a)
        last_click = tl.where(is_click, k + 1, last_click)
        first_click = tl.where(is_click & (first_click == 0), k + 1, first_click)
        marks = marks | (is_click.to(tl.int64) << k)
        is_walking = tl.where(uniform(go_bits) < tl.where(is_click, go_on, after_skip), is_walking, 0)
        row = tl.load(examination + k * num_columns + columns, mask=columns < num_columns, other=0.0)
        from_here = reached * row * a
        clicked = tl.sum(from_here, 0)
        reached = (reached - from_here) * after_skip
        reached += tl.where(columns == tl.minimum(k + 1, num_columns - 1), clicked * go_on, 0.0)
        reward += clicked * worth
    return marks, first_click, last_click, reward


@triton.jit
def num_examined(first_click, last_click, length, FEEDBACK: tl.constexpr):
    """How many positions were examined for sure (kernels/bandits/feedback.py)."""
    examined = length
    if FEEDBACK == _FIRST_CLICK:
        examined = tl.where(first_click > 0, first_click, length)
    elif FEEDBACK != _WHOLE_LIST:
        examined = tl.where(last_click > 0, last_click, length)
    return examined


@triton.jit
def is_clicked(marks, position_of):
    """Whether each item that is shown was clicked."""
    return (position_of >= 0) & (((marks >> tl.maximum(position_of, 0).to(tl.int64)) & 1) != 0)
