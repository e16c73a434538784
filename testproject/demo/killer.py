"""Killer: SIGKILLs workers in the middle of a step's body, spread over the whole run."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from testproject.demo.body_log import Body, BodyLog
from testproject.demo.fleet import Deed, Fleet

__all__ = ["Kill", "Killer", "interrupted", "runs_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One worker killed because this body was running in it."""

    body: Body
    deed: Deed


class Killer:
    """Strikes until ``wanted`` workers have died in mid-step, each time that the next share of the work is done."""

    def __init__(self, fleet: Fleet, log: BodyLog, *, wanted: int, bodies: int, chance: random.Random) -> None:
        self._fleet, self._log, self._chance = fleet, log, chance
        self._wanted, self._share = wanted, bodies / wanted
        self.kills: list[Kill] = []
        self._others: list[Kill] = []
        self._failed = 0

    @property
    def all_kills(self) -> list[Kill]:
        """Its own, and those that were noted."""
        return [*self.kills, *self._others]

    def note(self, kills: list[Kill]) -> None:
        """Workers that somebody else has killed."""
        self._others += kills

    def strike(self) -> Kill | None:
        """Kill one worker if it is time to and a body is running; whom, and in which step."""
        hits = len(self.kills) - self._failed
        if hits >= self._wanted or self._log.ended_count() < self._share * (hits + 0.5):
            return None
        gone = {kill.deed.pid for kill in self.all_kills}
        body = self._choose([body for body in self._log.open_bodies() if not runs_in(body, gone)])
        if body is None:
            return None
        self.kills.append(Kill(body=body, deed=self._fleet.strike(body)))
        # A body that ended in the moment of the kill was not interrupted: one more is due.
        self._failed = len(self.kills) - len(interrupted(self.kills, self._log.bodies()))
        return self.kills[-1]

    def _choose(self, running: list[Body]) -> Body | None:
        """One of the steps in which a worker has died least often so far, so that every step has its turn."""
        if not running:
            return None
        deaths = Counter(kill.body.step for kill in self.kills)
        fewest = min(deaths[body.step] for body in running)
        return self._chance.choice([body for body in running if deaths[body.step] == fewest])


def runs_in(body: Body, pids: set[int]) -> bool:
    """Whether a body began in one of these processes, or in a child of one."""
    return not pids.isdisjoint({body.pid, body.parent_pid})


def interrupted(kills: list[Kill], bodies: list[Body]) -> list[Kill]:
    """The kills that really struck in mid-step: the body that was aimed at never came to its end."""
    ended = {body.number for body in bodies if body.ended}
    return [kill for kill in kills if kill.body.number not in ended]
