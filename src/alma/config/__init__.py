"""Configuration: read in one place, checked before anything is opened."""
