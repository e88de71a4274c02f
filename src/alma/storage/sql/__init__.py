"""SQL generation for the relational stores: tables, clauses and statements."""
