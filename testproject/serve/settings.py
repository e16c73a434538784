"""The demo's settings, with Django's own static files and error pages."""

from testproject.demo.settings import *  # noqa: F403

DEBUG = True
