"""What the service speaks of: messages and records, deployments and keys, ids, time and randomness."""
