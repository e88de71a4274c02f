"""Vector search (approximate nearest neighbours): the index port and its implementations."""
