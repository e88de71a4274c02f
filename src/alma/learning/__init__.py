"""Learning from outcomes, and forgetting."""
