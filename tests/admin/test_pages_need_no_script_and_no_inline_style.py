"""What this package adds to a page runs under the strictest content security policy, and without JavaScript."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

import django_durable
from tests.admin.flows import failed, waiting
from tests.admin.html import Page, parse
from tests.admin.visitors import EXECUTIONS, LISTS, page_of, verb_of

PACKAGE = Path(django_durable.__file__).parent


def pages(client: Client) -> list[Page]:
    broken, waits = failed("a"), waiting("b")
    waits.signal("other", {"a": list(range(100))})
    ticked = {"action": "retry_selected", "_selected_action": [str(broken.pk)]}
    responses = [client.get(url) for url in (*LISTS, page_of(broken), page_of(waits), verb_of(broken, "retry"))]
    return [parse(response) for response in [*responses, client.post(EXECUTIONS, ticked)]]


@pytest.mark.django_db
def test_no_inline_script_no_inline_style_no_handler(superuser: Client) -> None:
    for page in pages(superuser):
        assert all(script.get("src", "").startswith("/") for script in page.all("script"))
        assert not re.search(r"<script[^>]*>[^<\s]", page.source)
        assert not page.all("style")
        for tag, attributes in page.elements:
            assert "style" not in attributes, tag
            assert not [name for name in attributes if name.startswith("on")], tag


@pytest.mark.django_db
def test_every_button_is_a_link_or_a_form_of_its_own(superuser: Client) -> None:
    execution = failed("a")
    page = parse(superuser.get(page_of(execution)))
    assert verb_of(execution, "retry") in page.links()
    confirmation = parse(superuser.get(verb_of(execution, "retry")))
    assert {"method": "post"} in confirmation.all("form")
    assert ("submit", "Retry") in [(box.get("type"), box.get("value")) for box in confirmation.all("input")]


def test_our_templates_add_no_script() -> None:
    templates = list((PACKAGE / "templates").rglob("*.html"))
    assert len(templates) >= 5
    for template in templates:
        text = template.read_text()
        # One file of ours, which a page works without; never a line of script in a page.
        text = text.replace("""<script src="{% static 'django_durable/live.js' %}" defer></script>""", "")
        assert not re.search(r"<script|<style|\sstyle=|\son\w+=|\|safe|autoescape off", text), template


def test_our_colours_are_the_admins_own_so_that_the_dark_mode_holds() -> None:
    found = finders.find("django_durable/admin.css")
    assert found
    text = re.sub(r"/\*.*?\*/", "", Path(found).read_text(), flags=re.S)
    for name, setting in re.findall(r"([\w-]*(?:color|background))\s*:\s*([^;]+);", text):
        assert setting.startswith("var(--"), (name, setting)
    assert "@import" not in text
    assert "url(" not in text
