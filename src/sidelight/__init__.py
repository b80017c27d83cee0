"""Predict the missing entries of a table from the known ones and from side information."""

__version__ = "0.1.0"
