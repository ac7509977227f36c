"""Search for the settings of a ranker: a space of settings, trials that may be stopped early, and a study file."""
