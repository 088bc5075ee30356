"""Scope-bound handles of the four tiers, with the method names of the plan."""
