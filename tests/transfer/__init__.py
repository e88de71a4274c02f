"""Coming and going."""
