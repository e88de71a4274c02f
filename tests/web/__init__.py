"""The dashboard: its files, and what a browser makes of them."""
