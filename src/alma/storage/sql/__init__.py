"""The relational stores: records become tables, predicates become clauses, questions become statements."""
