"""The life of memories: where they go when they are put away, and how they come back."""
