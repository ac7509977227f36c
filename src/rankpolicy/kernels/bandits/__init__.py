"""Compiled steps of bandits and the loop that simulates them."""
