"""Retrieval: finding the few memories worth knowing before a task, and saying why."""
