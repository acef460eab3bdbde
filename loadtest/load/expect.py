"""Expectations: the value that was expected, the value that was found, and how long to wait."""

import time

DEADLINE_SECONDS = 30


class Failure(Exception):
    """An expectation was not met."""


def expect(what, expected, found):
    if found != expected:
        raise Failure(f"{what}: expected {expected!r}, found {found!r}")


def expect_in(what, expected, found):
    if expected not in found:
        raise Failure(f"{what}: expected {expected!r} in {found!r}")


def expect_same(what, expected, found, path=""):
    """Compares trees, and reports the first difference."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in {**expected, **found}:
            expect_same(what, expected.get(key), found.get(key), f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, pair in enumerate(zip(expected, found)):
            expect_same(what, *pair, f"{path}[{index}]")
    else:
        expect(f"{what}{path and ' at '}{path}", expected, found)


def poll(what, attempt):
    """Calls `attempt` until it raises no Failure; returns its result."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            return attempt()
        except Failure as failure:
            if time.monotonic() > deadline:
                raise Failure(f"{what}: not within {DEADLINE_SECONDS} s: {failure}") from None
            time.sleep(0.05)
