"""Learning: from what happened to what is worth doing again, or never again."""
