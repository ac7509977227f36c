"""Codes and limits that compiled kernels share with their callers; plain numbers, so that reading them compiles nothing."""

from __future__ import annotations

DCG = 0
NDCG = 1
AP = 2
RR = 3
P = 4
RECALL = 5
ERR = 6
AVG_RANK = 7
SUCCESS = 8

NO_CUTOFF = 1 << 40  # stands for "every position counts"; longer than any list


LEAVE_ONE_OUT, MEAN, GREEDY, NONE = range(4)


ITEM, IGNORED, NOT_UNDERSTOOD = 0, 1, 2  # what a line is
HIGHEST_FEATURE_ID = 2**31 - 1
