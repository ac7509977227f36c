"""The command line: one file per verb, listed in verbs.py; what they share is in support/."""
