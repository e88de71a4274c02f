"""Configuration: read and validated in one place."""
