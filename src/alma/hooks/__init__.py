"""Hooks of coding assistants: memories before a prompt, learning from what happened, without a language model.

`alma hook EVENT` reads an event as JSON and answers in JSON. It asks a resident process, or reads the store directly.
"""
