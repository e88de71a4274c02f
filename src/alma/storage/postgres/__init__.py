"""The PostgreSQL store: its backend, its connections, its searches and its migrations."""
