"""Steps of a program: each prints a line with its time, and the first that fails ends them."""

import signal
import sys
import time

from expect import DEADLINE_SECONDS, Failure


class Steps:
    """What has been done so far, and what failed."""

    def __init__(self):
        self.begin = time.monotonic()
        self.done = self.failed = 0

    def run(self, name, step, *args):
        """Runs a step; what it returns is told beside its name."""
        begin = time.monotonic()
        try:
            told = step(*args)
        except Exception as error:
            self.failed += 1
            found = error if isinstance(error, Failure) else repr(error)
            seconds = time.monotonic() - begin
            print(f"FAILED {name}: {found} ({seconds:.1f} s)", flush=True)
            return False
        self.done += 1
        told = f": {told}" if told else ""
        print(f"ok {name}{told} ({time.monotonic() - begin:.1f} s)", flush=True)
        return True

    def all(self, steps):
        """Runs steps by name until one fails."""
        return all(self.run(name, step) for name, step in steps.items())

    def end(self):
        seconds = time.monotonic() - self.begin
        print(f"{self.done} done, {self.failed} failed, {seconds:.0f} s")
        return self.failed > 0


def wait_until(what, is_so):
    """As `poll`, for what is there in milliseconds, and what is not awaited in vain."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not within {DEADLINE_SECONDS} s")
        time.sleep(0.004)


def stop_in_time(seconds):
    late = f"FAILED: it took longer than {seconds} s"
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(late))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal.alarm(seconds)
