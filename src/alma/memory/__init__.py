"""General memories and where they are worked with."""
