"""Steps of a program: each prints a line with its time; `all` stops at the first failure."""

import signal
import sys
import time

from expect import DEADLINE_SECONDS, Failure


class Steps:
    """Counts the steps that passed and those that failed."""

    def __init__(self):
        self.begin = time.monotonic()
        self.done = self.failed = 0

    def run(self, name, step, *args):
        """Runs a step; prints its result beside its name."""
        begin = time.monotonic()
        try:
            note = step(*args)
        except Exception as error:
            self.failed += 1
            found = error if isinstance(error, Failure) else repr(error)
            seconds = time.monotonic() - begin
            print(f"FAILED {name}: {found} ({seconds:.1f} s)", flush=True)
            return False
        self.done += 1
        note = f": {note}" if note else ""
        print(f"ok {name}{note} ({time.monotonic() - begin:.1f} s)", flush=True)
        return True

    def all(self, steps):
        """Runs steps by name until one fails."""
        return all(self.run(name, step) for name, step in steps.items())

    def end(self):
        seconds = time.monotonic() - self.begin
        print(f"{self.done} done, {self.failed} failed, {seconds:.0f} s")
        return self.failed > 0


def stop_in_time(seconds):
    late = f"FAILED: it took longer than {seconds} s"
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(late))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal.alarm(seconds)
