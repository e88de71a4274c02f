"""The relational stores: records become tables, predicates become clauses, SQLAlchemy Core writes the SQL."""
