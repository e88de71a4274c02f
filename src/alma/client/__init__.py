"""A small client of the REST service."""
