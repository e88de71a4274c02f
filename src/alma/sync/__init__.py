"""Keeps vectors consistent with the records."""
