"""The system of record: one contract, several stores that keep it."""
