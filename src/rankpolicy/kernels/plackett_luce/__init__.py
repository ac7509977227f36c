"""Compiled Plackett-Luce policies: draws, the race, gradient estimators, disparities."""
