"""The door: what every text passes before it is remembered."""
