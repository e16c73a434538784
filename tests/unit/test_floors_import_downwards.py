"""The floors of the house: a module imports from its own floor or a lower one, never from above.

Only imports that run when the module is imported count: those inside functions, and those for type checkers
only, are the documented doors upwards (``Execution``'s methods, for one).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "django_durable"
SOURCE = Path(__file__).resolve().parents[2] / PACKAGE

# (floor, modules and rooms, what is done there), from the ground upwards.
FLOORS: list[tuple[int, str, str]] = [
    (
        0,
        "errors clock database_errors durations ids showing sql signals quiet",
        "the ground: knows neither tables nor settings",
    ),
    (1, "models migrations", "the tables; who writes which"),
    (2, "conf payloads", "settings as one value; values to text and back"),
    (3, "planes routers", "which database a tenant's work is in"),
    (4, "dispatch", "from a committed intent to a message"),
    (5, "engine", "transitions, journal, messages: the only code that changes an execution"),
    (6, "authoring", "what a user writes with"),
    (7, "operators events", "audited verbs on top of transitions; publishing"),
    (8, "runtime", "what a process does with due work"),
    (
        9,
        "tasks celery admin rest management cli testing contrib checks apps",
        "faces: thin, no rules of their own",
    ),
]
FLOOR_OF = {name: floor for floor, names, _purpose in FLOORS for name in names.split()}
# The package root gives out everything, and only when asked: nobody below imports from it.
ROOF = 10


def violations(source: Path) -> list[str]:
    """What is wrong in a tree of modules, one line each."""
    modules = {module_name(path, source): path for path in sorted(source.rglob("*.py"))}
    found: list[str] = []
    for module, path in modules.items():
        if room(module) and room(module) not in FLOOR_OF:
            found.append(f"{module} is on no floor: place {room(module)!r} in FLOORS of {Path(__file__).name}")
            continue
        for line, target in imports_of(module, path, modules):
            if room(target) and room(target) not in FLOOR_OF:
                found.append(f"{path}:{line}: {target} is on no floor")
            elif not room(module):
                found.append(f"{path}:{line}: the package root imports {target}; it may do so only when asked")
            elif floor(target) > floor(module):
                found.append(
                    f"{path}:{line}: {module} (floor {floor(module)}) imports {target} "
                    f"(floor {floor(target)}); move what both need down, or import inside a function"
                )
    return found


def module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join((PACKAGE, *(part for part in parts if part != "__init__")))


def room(module: str) -> str:
    """The first name below the package; empty for the package itself."""
    return module.split(".")[1] if "." in module else ""


def floor(module: str) -> int:
    return FLOOR_OF[room(module)] if room(module) else ROOF


def imports_of(module: str, path: Path, modules: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """Line and name of each module of the package that importing this one imports."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in statements(ast.parse(path.read_text()).body):
        if isinstance(node, ast.Import):
            # The package root by its bare name is there already: importing any module of it has imported it.
            names = (name.name for name in node.names if is_ours(name.name) and name.name != PACKAGE)
            yield from ((node.lineno, name) for name in names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node, package)
            if is_ours(base):
                # ``from package import name``: a module of that name, or something that the package has.
                named = (f"{base}.{name.name}" for name in node.names)
                yield from ((node.lineno, name if name in modules else base) for name in named)


def absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parent = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*parent, *([node.module] if node.module else [])])


def is_ours(name: str) -> bool:
    return name == PACKAGE or name.startswith(f"{PACKAGE}.")


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement that runs at import: in ``try``, ``with``, ``if`` and classes too, not in functions."""
    for node in body:
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and is_type_checking(node.test):
            yield from statements(node.orelse)
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from statements(getattr(node, field, []))
        for handler in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            yield from statements(handler.body)


def is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def write_tree(folder: Path, files: dict[str, str]) -> Path:
    source = folder / PACKAGE
    for name, text in {"__init__.py": "", **files}.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return source


def test_every_module_is_on_a_floor_and_imports_downwards() -> None:
    assert violations(SOURCE) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from django_durable.engine import journal",
        "import django_durable.engine.journal",
        "from django_durable import engine",
        "from ..engine.journal import load",
        "from .. import engine",
        "try:\n    import django_durable.engine\nexcept ImportError:\n    pass",
        "try:\n    pass\nexcept ImportError:\n    import django_durable.engine",
        "class Row:\n    from django_durable.engine import journal",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import django_durable.engine",
        "from django_durable import workflow",
    ],
)
def test_an_upward_import_is_found_however_it_is_written(tmp_path: Path, statement: str) -> None:
    source = write_tree(
        tmp_path,
        {
            "engine/__init__.py": "",
            "engine/journal.py": "",
            "models/__init__.py": "",
            "models/row.py": statement,
        },
    )
    (found,) = violations(source)
    assert "django_durable.models.row (floor 1) imports django_durable" in found


@pytest.mark.parametrize(
    "statement",
    [
        "def load():\n    from django_durable.engine import journal",
        "class Row:\n    def load(self):\n        import django_durable.engine",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import django_durable.engine",
        "import typing\nif typing.TYPE_CHECKING:\n    import django_durable.engine",
        "from django_durable import errors",
        "from django_durable.models.row import other",
        "import django_durable",
        "import django_durables_engine",
    ],
)
def test_doors_types_and_downward_imports_are_allowed(tmp_path: Path, statement: str) -> None:
    source = write_tree(
        tmp_path,
        {"engine/__init__.py": "", "errors.py": "", "models/__init__.py": "", "models/row.py": statement},
    )
    assert violations(source) == []


def test_a_module_on_no_floor_is_named(tmp_path: Path) -> None:
    (found,) = violations(write_tree(tmp_path, {"attic/box.py": ""}))
    assert "django_durable.attic.box is on no floor: place 'attic' in FLOORS" in found


def test_the_package_root_imports_only_when_asked(tmp_path: Path) -> None:
    lazy = "def __getattr__(name):\n    from django_durable.errors import DurableError\n    return DurableError"
    assert violations(write_tree(tmp_path / "lazy", {"errors.py": "", "__init__.py": lazy})) == []
    eager = "from django_durable.errors import DurableError"
    (found,) = violations(write_tree(tmp_path / "eager", {"errors.py": "", "__init__.py": eager}))
    assert "the package root imports django_durable.errors" in found
