"""Measuring: a database that is filled for it, and the bare driver to compare with."""
