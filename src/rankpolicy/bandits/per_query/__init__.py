"""One bandit per query, millions of them in one sparse table."""
