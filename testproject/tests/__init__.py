"""The shop's own tests: what a project's suite looks like. ``manage.py test`` runs them, pytest too."""
