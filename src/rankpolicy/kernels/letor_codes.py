"""Codes shared by the compiled and the Python parser of LETOR lines."""

ITEM, IGNORED, NOT_UNDERSTOOD = 0, 1, 2  # what a line is
HIGHEST_FEATURE_ID = 2**31 - 1
