"""Migrations: numbered SQL files for each database, and what applies and checks them."""
