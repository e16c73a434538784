"""mypy --strict and pyright agree with every ``assert_type`` of usage.py, and refuse each line that must be refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_mypy_accepts_the_usage_and_refuses_the_mistakes() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", str(Path(__file__).with_name("usage.py"))]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert usage_lines() >= 60


def test_pyright_accepts_the_usage_and_refuses_the_mistakes(tmp_path: Path) -> None:
    (tmp_path / "usage.py").write_text(Path(__file__).with_name("usage.py").read_text())
    config = {
        "include": ["usage.py"],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "standard",
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--project", str(tmp_path), "--pythonpath", sys.executable]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "0 errors" in checked.stdout


def usage_lines() -> int:
    return len([line for line in Path(__file__).with_name("usage.py").read_text().splitlines() if "(" in line])
