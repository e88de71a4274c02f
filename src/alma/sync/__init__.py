"""What keeps vectors and indexes true to the records."""
