"""The operators' pages, seen through Django's test client."""
