"""Retention measured: many ended executions, and what it takes to remove them."""
