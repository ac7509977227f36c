"""Rankers whose scores come from a network trained by the fit loop."""
