"""What clicks reveal about shown items, and the counting of it. Every bandit that knows which items were examined learns here.

    all-clicks    DCM: every item down to the last click was examined, and each click counts
    first-click   cascade: every item down to the first click was examined; later clicks are ignored
    last-click    every item down to the last click was examined, but only that click counts
    whole-list    multiple plays: every item shown was examined, and each click counts

Without a click the whole list was examined.
"""

from rankpolicy.kernels.bandits.memory import CLICKS, FIRST_CLICK, LAST_CLICK, OBSERVATIONS, WHOLE_LIST
from rankpolicy.kernels.bandits.step import compiled, learn_step


@compiled
def num_examined(memory, clicks):
    """How many positions of a list were examined for sure."""
    length = len(clicks)
    if memory.feedback == WHOLE_LIST:
        return length
    if memory.feedback == FIRST_CLICK:
        for position in range(length):
            if clicks[position] == 1:
                return position + 1
    else:
        for position in range(length - 1, -1, -1):
            if clicks[position] == 1:
                return position + 1
    return length


@compiled
def counted_click(memory, clicks, position, examined):
    """The click at an examined position, 0 where the bandit's feedback ignores it."""
    if memory.feedback == LAST_CLICK and position < examined - 1:
        return 0.0
    return float(clicks[position])


@compiled
def count(memory, table, item, weight, click):
    memory.statistics[table, item, OBSERVATIONS] += weight
    memory.statistics[table, item, CLICKS] += weight * click


@learn_step
def learn_items(memory, ranking, clicks, weight):
    """Statistics (1, item, 2): clicks and observations of each item."""
    examined = num_examined(memory, clicks)
    for position in range(examined):
        count(memory, 0, ranking[position], weight, counted_click(memory, clicks, position, examined))


@learn_step
def learn_positions(memory, ranking, clicks, weight):
    """Statistics (position, item, 2): clicks and observations of each item at each position."""
    examined = num_examined(memory, clicks)
    for position in range(examined):
        count(memory, position, ranking[position], weight, counted_click(memory, clicks, position, examined))
