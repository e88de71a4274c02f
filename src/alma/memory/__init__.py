"""The general memory: its relationships, patterns, history and audit."""
