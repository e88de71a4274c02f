"""Time expressions: the span of time that a question names, read by rules; usable without the rest of ALMA."""
