"""Sphinx: Markdown through MyST, the theme furo; every warning is an error (``make docs``)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from django_durable import __version__

project = "django-durable"
author = "The django-durable authors"
copyright = f"2026, {author}"
release = version = __version__

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nitpicky = True

html_theme = "furo"
html_title = "django-durable"
