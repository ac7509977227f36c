"""What clicks on a list say of its items, for users who scan from the top. Statistics (1, item, 2): clicks and observations."""

from rankpolicy.kernels.bandits.index import CLICKS, OBSERVATIONS
from rankpolicy.kernels.bandits.step import compiled, learn_step


@compiled
def last_click(clicks):
    """Index of the last click; the last position where there is none, as the whole list was then examined."""
    for position in range(len(clicks) - 1, -1, -1):
        if clicks[position] == 1:
            return position
    return len(clicks) - 1


@learn_step
def learn_to_last_click(memory, ranking, clicks, weight):
    """DCM: every item down to the last click was examined; what lies below may or may not have been."""
    for position in range(last_click(clicks) + 1):
        memory.statistics[0, ranking[position], OBSERVATIONS] += weight
        memory.statistics[0, ranking[position], CLICKS] += weight * clicks[position]


@learn_step
def learn_to_first_click(memory, ranking, clicks, weight):
    """Cascade: the first click ends the session."""
    for position in range(len(ranking)):
        memory.statistics[0, ranking[position], OBSERVATIONS] += weight
        if clicks[position] == 1:
            memory.statistics[0, ranking[position], CLICKS] += weight
            break


@learn_step
def learn_last_click_only(memory, ranking, clicks, weight):
    """Every item down to the last click was examined; only that one counts as clicked."""
    last = last_click(clicks)
    for position in range(last + 1):
        memory.statistics[0, ranking[position], OBSERVATIONS] += weight
    if len(ranking) > 0:
        memory.statistics[0, ranking[last], CLICKS] += weight * clicks[last]
