"""Shipped for users: builders, clock, contract suites."""
