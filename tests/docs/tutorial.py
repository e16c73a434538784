"""Play a tutorial page as a newcomer would: its files are written, its commands typed, its outputs compared.

| block | what is done |
|---|---|
| ``console`` | each ``$`` line is typed in the project's folder; the lines below it are what it must print |
| ``python`` | a file of the project, named by the comment in its first line; ``, at the end`` adds to it |
| ``pycon`` | typed in ``manage.py shell`` |
| ``text`` | what the worker's terminal shows; ``^C`` in the first line is typed there |

A line ``...`` of an output stands for any lines. Ids, process numbers, workers, times and durations may be
others than printed, but the same ones wherever the page prints the same: ``kill -9 4242`` kills the process that
said that it was 4242.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.docs.page import Block, blocks
from tests.services.process import Process
from tests.services.waiting import wait_until

__all__ = ["Tutorial"]

ANY_LINES = "..."
# What differs from run to run; what is remembered must be the same wherever the page prints the same.
VARIABLE = re.compile(
    r"(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|(?P<worker>\b[\w.-]+:\d+:[0-9a-f]{8}\b)"
    r"|(?P<process>(?<=process )\d+)"
    r"|(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+\+00:00|Z))"
    r"|(?P<seconds>\d+\.\d+ ?s\b)"
)
ACTUAL = {
    "id": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "worker": r"[^\s:]+:\d+:[0-9a-f]{8}",
    "process": r"\d+",
    "time": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)",
    "seconds": r"\d+\.\d+ ?s",
}
REMEMBERED = ("id", "worker", "process")
SHELL = """
import doctest, sys
parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
test = parser.get_doctest(open({path!r}).read(), {{}}, "the tutorial", {path!r}, {line})
sys.exit(1 if runner.run(test).failed or not test.examples else 0)
"""


class Tutorial:
    """One reader with a folder, an environment, and two terminals."""

    def __init__(self, page: Path, folder: Path, env: Mapping[str, str], distribution: str) -> None:
        self.page, self.folder, self.env, self.distribution = page, folder, dict(env), distribution
        self.cwd = folder
        self.worker: Process | None = None
        self.workers: list[Process] = []
        self.typed: list[str] = []
        self.after_command: Callable[[str], None] = lambda command: None
        self.with_sqlite = True
        self._shown: list[str] = []
        self._actual: dict[str, str] = {}

    def play(self) -> None:
        """Do all that the page says; ``AssertionError`` where something else comes out."""
        kinds = {"console": self.type, "python": self.write, "pycon": self.try_out, "text": self.watch}
        try:
            for block in blocks(self.page.read_text()):
                kinds[block.language](block)
        finally:
            for process in self.workers:
                process.kill_group()
        assert self.worker is None, "the page leaves a worker running"

    # -- files -----------------------------------------------------------------------------------------------

    def write(self, block: Block) -> None:
        """Create a file, or add to it."""
        title, _, code = block.code.partition("\n")
        said = re.fullmatch(r"# (?P<path>[\w/]+\.py)(?P<end>, at the end)?(?P<sqlite>, for SQLite)?", title)
        assert said, f"line {block.line}: {title!r} names no file"
        if said["sqlite"] and not self.with_sqlite:
            return
        path = self.cwd / said["path"]
        assert path.parent.is_dir(), f"line {block.line}: there is no folder for {said['path']}"
        before = path.read_text() + "\n" if said["end"] else ""
        path.write_text(before + code)

    # -- the second terminal ---------------------------------------------------------------------------------

    def type(self, block: Block) -> None:
        """Type the commands of one block."""
        command, shown = "", list[str]()
        for line in [*block.code.splitlines(), "$ "]:
            if not line.startswith("$ "):
                shown.append(line)
                continue
            if command:
                self._enter(command, shown, block)
            command, shown = line.removeprefix("$ "), []

    def _enter(self, command: str, shown: Sequence[str], block: Block) -> None:
        words = shlex.split(self._with_actual(command))
        self.typed.append(command)
        if words[:4] == ["python", "-m", "pip", "install"]:
            self._check_install(words[4:], block)
        elif words[0] == "cd":
            self.cwd = self.cwd / words[1]
        elif words[:2] == ["kill", "-9"]:
            self._kill(int(words[2]))
        elif words == ["python", "manage.py", "durable", "worker"]:
            self._start_worker(words)
        elif words == ["python", "manage.py", "shell"]:
            assert not shown  # what is typed there follows in a block of its own
        else:
            self._run_and_compare(words, shown, f"line {block.line}: {command}")
        self.after_command(command)

    def _run_and_compare(self, words: Sequence[str], shown: Sequence[str], where: str) -> None:
        """Who looks at an execution too early looks again; everything else is done once."""
        until = time.monotonic() + 30
        while True:
            said = self._run(words)
            try:
                return self._compare(shown, said, where)
            except AssertionError:
                if words[2:3] != ["durable"] or time.monotonic() > until:
                    raise

    def _check_install(self, wanted: Sequence[str], block: Block) -> None:
        names = {"Django", self.distribution}
        assert wanted, f"line {block.line}: nothing is installed"
        for name in wanted:
            assert name.partition("[")[0] in names or name.startswith("/path/to/"), f"line {block.line}: {name}"

    def _run(self, words: Sequence[str]) -> str:
        interpreter = {"python": [sys.executable], "django-admin": [sys.executable, "-m", "django"]}
        done = subprocess.run(
            [*interpreter[words[0]], *words[1:]],
            env=self.env,
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def try_out(self, block: Block) -> None:
        """Type lines in Django's shell."""
        path = self.folder / f"typed-{block.line}.txt"
        path.write_text(self._with_actual(block.code))
        self._run(["python", "manage.py", "shell", "-c", SHELL.format(path=str(path), line=block.line - 1)])

    # -- the first terminal ----------------------------------------------------------------------------------

    def _start_worker(self, words: Sequence[str]) -> None:
        assert self.worker is None, "the page starts a worker while another one runs"
        self.worker = Process(
            [sys.executable, *words[1:]],
            env={**self.env, "PYTHONUNBUFFERED": "1"},
            cwd=self.cwd,
            folder=self.folder,
            name=f"worker-{len(self.workers) + 1}",
        )
        self.workers.append(self.worker)
        self._shown = []

    def watch(self, block: Block) -> None:
        """Wait until the worker's terminal shows these lines."""
        worker = self.worker
        assert worker is not None, f"line {block.line}: no worker runs"
        lines = block.code.splitlines()
        stopped = lines[0] == "^C"
        if stopped:
            os.kill(worker.pid, signal.SIGINT)
        for line in lines[1:] if stopped else lines:
            wait_until(partial(self._find, line, worker), within=90, because=f"the worker says {line!r}")
            self._shown.append(line)
        if stopped:
            assert worker.wait(within=60) == 0, worker.stderr
            self._end_worker(worker)

    def _kill(self, number: int) -> None:
        worker = self.worker
        assert worker is not None
        assert worker.pid == number, f"the page kills {number}, the worker is {worker.pid}"
        worker.kill()
        self._end_worker(worker)

    def _end_worker(self, worker: Process) -> None:
        """What it has written is what the page shows, no line more."""
        left = self._lines(worker)
        for line in self._shown:
            fitting = [one for one in left if self._match(line, one)]
            assert fitting, f"{line!r} is not in {left}"
            left.remove(fitting[0])
        assert not left, f"the page does not show {left}"
        self.worker = None

    def _find(self, line: str, worker: Process) -> bool:
        return any(self._match(line, one) for one in self._lines(worker))

    @staticmethod
    def _lines(worker: Process) -> list[str]:
        return [*worker.stdout.splitlines(), *worker.stderr.splitlines()]

    # -- comparing -------------------------------------------------------------------------------------------

    def _with_actual(self, text: str) -> str:
        for shown, actual in self._actual.items():
            text = re.sub(rf"(?<![\w-]){re.escape(shown)}(?![\w-])", actual, text)
        return text

    def _compare(self, shown: Sequence[str], actual: str, where: str) -> None:
        if not shown:
            return  # the page shows nothing of it
        rest = actual.splitlines()
        skipping = False
        for line in shown:
            if line == ANY_LINES:
                skipping = True
                continue
            while skipping and rest and not self._match(line, rest[0]):
                rest.pop(0)
            assert rest and self._match(line, rest[0]), f"{where}: {line!r} is not what comes:\n{actual}"
            rest.pop(0)
            skipping = False
        assert skipping or not rest, f"{where}: more comes than the page shows:\n{actual}"

    def _match(self, shown: str, actual: str) -> bool:
        """Whether an actual line is the shown one; remembers what stands for what."""
        pattern, names, at = "", list[str](), 0
        for found in VARIABLE.finditer(shown):
            pattern += _literal(shown[at : found.start()]) + self._part(found, names)
            at = found.end()
        match = re.fullmatch(pattern + _literal(shown[at:].rstrip()), actual.rstrip())
        if match is None:
            return False
        self._actual.update(zip(names, match.groups(), strict=True))
        return True

    def _part(self, found: re.Match[str], names: list[str]) -> str:
        kind = found.lastgroup or ""
        if kind not in REMEMBERED:
            return ACTUAL[kind]
        if found[0] in self._actual:
            return re.escape(self._actual[found[0]])
        names.append(found[0])
        return f"({ACTUAL[kind]})"


def _literal(text: str) -> str:
    """Columns may be wider or narrower than printed."""
    return r"\s+".join(re.escape(part) for part in re.split(r"\s+", text))
