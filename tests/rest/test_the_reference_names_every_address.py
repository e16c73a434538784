"""docs/reference/rest.md: every address with its permission, every filter, every scope."""

from __future__ import annotations

import re
from pathlib import Path

from django_durable.rest.document import document
from django_durable.rest.throttle import RATES
from tests.rest.requests import ENDPOINTS

REFERENCE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "rest.md").read_text()
ROWS = dict(re.findall(r"^\| `([A-Z]+ [^`]+)` \| `?([a-z_]+)", REFERENCE, flags=re.MULTILINE))


def test_addresses_are_those_of_the_document() -> None:
    made = {
        f"{method.upper()} {path.removeprefix('/')}"
        for path, methods in document("/durable")["paths"].items()
        for method in methods
    }
    assert set(ROWS) == made | {"GET schema/"}


def test_permissions_are_those_that_the_matrix_has_tried() -> None:
    tried = {endpoint.permission for endpoint in ENDPOINTS.values()}
    assert set(ROWS.values()) == tried | {"none"}


def test_filters_and_scopes_are_named() -> None:
    for path, methods in document("/durable")["paths"].items():
        for parameter in methods.get("get", {}).get("parameters", ()):
            if parameter["in"] == "query" and parameter["name"] not in ("cursor", "values"):
                name = parameter["name"]
                assert re.search(rf"`\??{name}=?`", REFERENCE), (path, name)
    for scope, rate in RATES.items():
        assert f"| `{scope}` |" in REFERENCE
        assert f"| {rate} |" in REFERENCE
