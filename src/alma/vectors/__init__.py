"""Nearest neighbours: indexes beside the storage, behind one port."""
