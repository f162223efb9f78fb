"""What is wrong with a policy: where, why, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpufair.errors import GpufairError


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding.

    `path` is the field, as in `spec.tiers[1].aging.every`, or empty for the whole document;
    `message` continues it: "is 300, above nominal 256: write at most 256". `line` is the line of
    the file (from 1) for what has no path, such as a syntax error; 0 otherwise.
    """

    path: str
    message: str
    severity: Severity = Severity.ERROR
    line: int = 0

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


def error(path: str, message: str) -> Problem:
    return Problem(path, message)


def warning(path: str, message: str) -> Problem:
    return Problem(path, message, Severity.WARNING)


def errors(problems: list[Problem]) -> list[Problem]:
    """Return the problems that make a policy invalid."""
    return [problem for problem in problems if problem.is_error]


class InvalidPolicy(GpufairError):  # noqa: N818 - the name says what is wrong
    """A policy that cannot be read; `problems` (never empty) says why, field by field."""

    def __init__(self, problems: list[Problem]) -> None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{more}")
        self.problems = problems
