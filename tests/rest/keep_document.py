"""Write the OpenAPI document anew: ``python -m tests.rest.keep_document``."""

from __future__ import annotations

import os

import django


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")
    django.setup()
    from django_durable.rest.document import document
    from tests.rest.test_the_document_says_what_the_answers_are import KEPT, text_of

    KEPT.write_text(text_of(document("/durable")))


if __name__ == "__main__":
    main()
