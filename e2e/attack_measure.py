"""Measures one attack: the well-behaved client before and during it, and the server's memory."""

import ssl
import threading
import time

import attack_bodies
import beside
from attackers import Place
from beside import Process
from results import percentile  # loadtest/load
from reviews import TYPICAL

# The machine has two cores for everything.
PROCESSES = 2
# A run is cut this long after the attack began.
CUT_SECONDS = 40
# A server above it is killed, to protect the machine.
MAX_RSS_MIB = 6 << 10
WATCH_SECONDS = 0.1
# Less of a core than this is an idle server.
IDLE_CORES = 0.1


class Watch:
    """Watches the memory of a server, and kills the server if it takes too much."""

    def __init__(self, server):
        self.server, self.first, self.last, self.high = server, server.rss_mib(), 0, 0
        self.has_ended = threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        while not self.has_ended.wait(WATCH_SECONDS):
            self.read()

    def read(self):
        try:
            self.last, high = self.server.rss_mib(), self.server.rss_mib("VmHWM")
        except (OSError, TypeError):
            return  # The process has ended.
        self.high = max(self.high, high)
        if self.last > MAX_RSS_MIB:
            self.server.process.kill()

    def end(self):
        self.has_ended.set()
        self.thread.join()
        self.read()
        return self.first, self.high, self.last


def wait_until_idle(server, ends):
    """Waits until the server is idle."""
    while time.monotonic() < ends and server.process.poll() is None:
        begin, before = time.monotonic(), server.cpu_seconds()
        time.sleep(WATCH_SECONDS)
        if server.cpu_seconds() - before < IDLE_CORES * (time.monotonic() - begin):
            return


class Measurement:
    """One attack on one server."""

    def __init__(self, attack, server, folder):
        self.attack, self.server = attack, server
        self.place = Place(server.address, self.certificate(server.address, folder))
        self.target = self.place
        if attack.on_grpc:
            self.target = Place(server.grpc, self.certificate(server.grpc, folder))
        self.args = attack.prepare(self.target)
        self.seconds = attack.seconds

    @staticmethod
    def certificate(address, folder):
        host, port = address.rsplit(":", 1)
        path = folder / f"{port}.crt"
        path.write_text(ssl.get_server_certificate((host, int(port))))
        return str(path)

    def run(self, quiet_seconds, attack_seconds):
        """A row of figures, in seconds."""
        attack_seconds = self.seconds or attack_seconds
        ends = time.monotonic() + quiet_seconds + max(CUT_SECONDS, 2 * attack_seconds)
        body = TYPICAL.read_bytes()
        kept = Process(beside.reviews, self.server.address, body, ends)
        bodies = body, attack_bodies.large_review()
        new = Process(beside.new_connections, self.server.address, bodies, ends)
        probes = None
        if self.server.admin:
            probes = Process(beside.probes, self.server.admin, ends)
        time.sleep(quiet_seconds)
        begin = time.monotonic()
        done = self.run_attackers(begin + attack_seconds)
        end = time.monotonic()
        kept.send((begin, end))
        samples = kept.result(ends + beside.GIVES_UP_SECONDS - end) or []
        for other in filter(None, (new, probes)):
            other.send("end")
        new_samples = new.result(beside.GIVES_UP_SECONDS + 1) or []
        probe_samples = (probes and probes.result(beside.GIVES_UP_SECONDS + 1)) or []
        row = {"attack": self.attack.name, "connections": self.attack.connections, "done": done}
        return row | figures(samples, new_samples, probe_samples, begin, end)

    def run_attackers(self, until):
        """Runs the attackers; returns their counts by name."""
        count = min(PROCESSES, self.attack.connections)
        shares = [len(range(index, self.attack.connections, count)) for index in range(count)]
        if self.attack.is_one_process:
            shares = [self.attack.connections]
        attackers = [Process(attacker, self.attack.run, self.target, share, until, self.args)
                     for share in shares]
        time.sleep(max(0, until - time.monotonic()))
        done = {}
        for each in attackers:
            result = each.result(until + self.attack.grace - time.monotonic()) or {}
            for name, found in result.items():
                done[name] = done.get(name, 0) + found
        return done


def attacker(_, work, place, connections, until, args):
    return dict(work(place, connections, until, *args))


def figures(samples, new, probes, begin, end):
    """The figures of the well-behaved client and of the probes, before and during the attack."""
    good = [sample for sample in samples if not sample.problem]
    quiet = [sample.seconds for sample in good if sample.begin < begin]
    # Includes a review that began before the attack and was answered during it.
    under = [sample.seconds for sample in samples
             if sample.begin + sample.seconds > begin and sample.begin < end]
    usual = beside.USUAL * percentile(quiet, 0.99) if quiet else 0
    after = [sample for sample in samples if beside.is_usual(sample, end, usual)]
    problems = [sample.problem for sample in samples + new if sample.problem]
    return {
        "quiet": times(quiet), "under": times(under), "reviews": len(under),
        "new_worst": max((sample.seconds for sample in new), default=None),
        "refused": len(problems), "problems": problems[:3],
        "probe_worst": max((sample.seconds for sample in probes), default=None),
        "probes": len(probes),
        "probe_problems": [sample.problem for sample in probes if sample.problem][:3],
        "usual_after": after[0].begin + after[0].seconds - end if after else None,
    }


def times(seconds):
    """p50, p99 and the longest."""
    if not seconds:
        return None
    return [percentile(seconds, 0.5), percentile(seconds, 0.99), max(seconds)]
