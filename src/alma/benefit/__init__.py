"""Measured benefit: whether showing a memory helps, by withholding a small random share."""
