"""``docs/reference/commands.md`` says what the code does, and nothing that it does not do."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from dataclasses import fields
from pathlib import Path

import pytest

from django_durable.cli.exits import Exit
from django_durable.cli.verbs import VERBS
from django_durable.operators import doctor
from django_durable.operators.stats import Stats
from tests.services.databases import ROOT

PAGE = (ROOT / "docs/reference/commands.md").read_text()
HEADINGS = [heading for line in re.findall(r"^### (.*)$", PAGE, re.MULTILINE) for heading in line.split(", ")]


def options_of(verb: str) -> set[str]:
    parser = ArgumentParser()
    VERBS[verb].add_arguments(parser)
    return {flag for action in parser._actions for flag in action.option_strings} - {"-h", "--help"}


def test_every_verb_has_its_heading() -> None:
    assert sorted(heading.strip("`").split()[0] for heading in HEADINGS) == sorted(VERBS)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_option_is_explained(verb: str) -> None:
    (section,) = [
        part for part in re.split(r"^##+ ", PAGE, flags=re.MULTILINE) if re.match(rf"(`[^`]*`, )*`{verb}[ `]", part)
    ]
    told = {*re.findall(r"--[a-z-]+", section), "--json"}
    if verb in ("cancel", "retry", "pause", "resume"):
        told |= {"--actor", "--reason"}
    assert options_of(verb) <= told


def test_every_exit_code_is_explained() -> None:
    codes = re.findall(r"^\| (\d) \|", PAGE, re.MULTILINE)
    assert codes == [str(int(code)) for code in Exit]


def test_every_finding_is_explained_and_no_other() -> None:
    source = "".join(path.read_text() for path in Path(doctor.__file__).parent.glob("*.py"))
    known = dict(re.findall(r'code="([a-z-]+)",\s+severity=([A-Z]+)', source))
    told = dict(re.findall(r"^\| `([a-z-]+)` \| (error|warning|info) \|", PAGE, re.MULTILINE))
    assert told == {code: severity.lower() for code, severity in known.items()}


def test_every_number_of_stats_is_explained() -> None:
    section = PAGE.partition("### `stats`")[2].partition("### ")[0]
    assert {field.name for field in fields(Stats)} <= set(re.findall(r"`([a-z_]+)`", section))
