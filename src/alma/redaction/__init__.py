"""Redaction: secrets are taken out of texts and records before anything keeps them."""
