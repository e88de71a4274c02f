"""The SQLite store: its backend, its connections, its full text and its migrations."""
