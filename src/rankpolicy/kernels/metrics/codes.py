"""Codes by which compiled kernels know metrics; plain numbers, so that reading them compiles nothing."""

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
