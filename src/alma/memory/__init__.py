"""General memories: the journal they are kept in, the layers they rise through, and what of them matters now."""
