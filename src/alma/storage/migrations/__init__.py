"""Migrations: numbered SQL files for each database, with checksums."""
