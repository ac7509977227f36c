"""Codes and limits that compiled kernels share with their callers; plain numbers, so that reading them compiles nothing."""

from __future__ import annotations

METRIC_CODES = DCG, NDCG, AP, RR, P, RECALL, ERR, AVG_RANK, SUCCESS = range(9)
NO_CUTOFF = 1 << 40  # stands for "every position counts"; longer than any list


LEAVE_ONE_OUT, MEAN, GREEDY, NONE = range(4)


ITEM, IGNORED, NOT_UNDERSTOOD = 0, 1, 2  # what a line is
HIGHEST_FEATURE_ID = 2**31 - 1
