"""Learning from shown lists: steps are counted, old lists are discounted or leave the window, and the bandit's learn does the rest."""

from rankpolicy.kernels.bandits.step import compiled, log_step


@compiled
def num_shown(ranking):
    """Number of items in a list of a log; -1 ends it."""
    for position in range(len(ranking)):
        if ranking[position] < 0:
            return position
    return len(ranking)


@compiled
def scale(values, factor):
    for place in range(len(values)):
        values[place] *= factor


@log_step
def learn_log(learn, memory, rankings, clicks):
    """Learn from shown lists (list, position), -1 past their end, and their clicks (list, position) int8, in the given order."""
    window = len(memory.window_rankings)
    for row in range(len(rankings)):
        length = num_shown(rankings[row])
        if length == 0:
            continue
        if memory.discount < 1.0:
            scale(memory.statistics.ravel(), memory.discount)
        if window > 0:
            slot = memory.steps[0] % window
            oldest = memory.window_rankings[slot]
            if memory.steps[0] >= window:
                oldest_length = num_shown(oldest)
                learn(memory, oldest[:oldest_length], memory.window_clicks[slot, :oldest_length], -1.0)
            for position in range(len(oldest)):
                oldest[position] = rankings[row, position] if position < length else -1
                memory.window_clicks[slot, position] = clicks[row, position] if position < length else 0
        learn(memory, rankings[row, :length], clicks[row, :length], 1.0)
        memory.steps[0] += 1
