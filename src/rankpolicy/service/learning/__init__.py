"""How policies learn from the log: online, by retraining, and judged by off-policy estimates."""
