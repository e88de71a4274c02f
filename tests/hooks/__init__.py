"""Hooks of coding assistants: real processes, one store per module."""
