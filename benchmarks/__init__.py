"""Measurements. Each is a module to run, and writes what it found to `results/`."""
