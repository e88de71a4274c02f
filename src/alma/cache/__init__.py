"""Caches of retrieval results, behind one port."""
