"""Codes by which compiled kernels know control variates; plain numbers, so that reading them compiles nothing."""

LEAVE_ONE_OUT, MEAN, GREEDY, NONE = range(4)
