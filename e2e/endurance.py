"""The proxy-injector's container under load, while its files are swapped. Started by dropin.sh.

Mounts are swapped as a kubelet does, a thousand times each. Ten thousand connections idle beside a
thousand busy ones. SIGTERM arrives under load. Every request that was sent completely must have the
answer of one configuration or the other. Each step prints a line `ok …`, or `FAILED …` with the
expected value and the value that was found.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from certificate import Authority
from client import Clients, Exposition, Target, Tally, ask, certificate_digest, digest, metric
from container import Container
from dropin import CONFIG, STANDALONE, TLS, TRUST_ROOTS, manifests, patch_of, probe
from expect import Failure, expect, expect_in, poll
from steps import Steps, stop_in_time, wait_until

TOTAL_SECONDS = 295
REVIEW = Path(__file__).parent.parent / "loadtest/review-12k.json"
# Many reload intervals.
QUIET_SECONDS = 0.2
# Torn files, which must be rejected, come before every tenth swap.
TORN_EVERY = 10
PROCESSES, CONNECTIONS = 2, 16
# Leaves room for swaps on a machine of few cores.
PAUSE = 0.03
LOG_LINES = "200"
SETTLING_SECONDS = 5


class Server:
    """The container of the newest manifest, and its expected answers."""

    def __init__(self, binary, manifest, folder, env):
        folder.mkdir()
        self.folder, self.manifest = folder, manifest
        self.authority = Authority(folder / "ca")
        self.port, self.admin_port = manifest.ports
        host = manifest.service_name()
        self.target = Target(self.port, host, str(self.authority.path))
        self.secrets = [self.authority.secret(host, "PKCS#8 EC") for _ in range(3)]
        self.certificates = [certificate_digest(secret["tls.crt"]) for secret in self.secrets]
        self.exposition = Exposition(self.admin_port)
        self.context = self.target.context()
        self.body = REVIEW.read_bytes()
        self.container = Container(binary, manifest, folder, self.secrets[0],
                                   env={**STANDALONE, **env})
        self.log = folder / "log"
        self.tail = None

    def start(self):
        # Only the last lines of the log are of interest.
        with self.log.open("wb") as log:
            self.tail = subprocess.Popen(["tail", "-n", LOG_LINES], stdin=subprocess.PIPE,
                                         stdout=log)
        self.container.start(self.tail.stdin)
        self.tail.stdin.close()
        poll("/ready", lambda: probe(self.manifest, "readinessProbe", (200, "ok\n")))

    def stop(self):
        self.container.kill()
        if self.tail:
            self.tail.wait()

    def reloads(self, what):
        """How many reloads of these files succeeded and failed so far."""
        text = self.exposition.read()
        return tuple(metric(text, "injectd_reloads_total", what=what, result=result)
                     for result in ("applied", "rejected"))

    def answer(self):
        """The digests of the current answer and of its certificate."""
        answer, certificate = ask(self.target, self.body, context=self.context)
        patch_of(answer)
        raw = json.dumps(answer, separators=(",", ":")).encode()
        return digest(raw), certificate

    def clients(self, processes=PROCESSES, pause=0.0):
        return Clients(self.target, self.body, processes, pause)


class Swaps:
    """One mount: two good contents in turn, and sometimes one that must be rejected."""

    def __init__(self, server, what, path, good, torn, replaced=0):
        self.server, self.what, self.path = server, what, path
        self.good, self.torn, self.replaced = good, torn, replaced
        self.volume = server.container.volumes[path]

    def run(self, count, unawaited):
        """`count` swaps, each awaited, then `unawaited` ones without waiting."""
        expected = [self.show(content) for content in self.good]
        if expected[0] == expected[1]:
            raise Failure("both contents give the same answer")
        clients = self.server.clients(pause=PAUSE)
        try:
            clients.do("open", CONNECTIONS)
            clients.begin("load", self.replaced * PROCESSES)
            torn = self.one_by_one(count, expected)
            taken, refused = self.without_waiting(unawaited, expected)
            tally = clients.stop_load()
        finally:
            clients.close()
        tally.expect_good(*map(set, zip(*expected)))
        for index in range(2):
            if not self.seen(tally, expected[index]):
                raise Failure(f"content {index} was never served: {tally.answers}")
        return (f"{count} swaps accepted and {torn} torn ones rejected; of {unawaited} without "
                f"waiting, {taken} accepted and {refused} rejected; {tally.answered} reviews "
                f"answered over {tally.opened + CONNECTIONS} connections, 0 failed, 0 wrong, "
                f"slowest {tally.slowest * 1000:.0f} ms")

    def seen(self, tally, expected):
        answer, certificate = expected
        # Older connections have the old certificate.
        return answer in tally.answers and (not self.replaced
                                            or certificate in tally.certificates)

    def show(self, content):
        """Swaps to this content; returns the answer under it."""
        wait_until("the earlier reloads", self.is_quiet)
        before = self.server.reloads(self.what)
        self.volume.write(content)
        self.await_reload((before[0] + 1, before[1]))
        return self.server.answer()

    def is_quiet(self):
        before = self.server.reloads(self.what)
        time.sleep(QUIET_SECONDS)
        return self.server.reloads(self.what) == before

    def await_reload(self, expected):
        wait_until("a reload", lambda: sum(self.server.reloads(self.what)) >= sum(expected))
        expect("reloads accepted and rejected", expected, self.server.reloads(self.what))

    def one_by_one(self, count, expected):
        taken, refused = self.server.reloads(self.what)
        torn = 0
        for index in range(count):
            if index % TORN_EVERY == 0:
                torn += 1
                self.volume.write(self.torn)
                self.await_reload((taken + index, refused + torn))
                # Before the first swap, the content is the last one of `show`.
                expect("the answer after torn files", expected[(index + 1) % 2],
                       self.server.answer())
            self.volume.write(self.good[index % 2])
            self.await_reload((taken + index + 1, refused + torn))
            expect("the answer after a swap", expected[index % 2], self.server.answer())
        return torn

    def without_waiting(self, count, expected):
        before = self.server.reloads(self.what)
        for index in range(count):
            self.volume.write(self.good[index % 2])
        last = expected[(count - 1) % 2]
        wait_until("the last content", lambda: self.server.answer() == last)
        return (after - then for after, then in zip(self.server.reloads(self.what), before))


def empty_bundle_is_rejected(server):
    """An empty bundle is rejected: without trust roots every pod would be denied."""
    volume = server.container.volumes[TRUST_ROOTS]
    good = server.manifest.find("ConfigMap", "linkerd-identity-trust-roots")["data"]
    expected, before = server.answer(), server.reloads("config")
    try:
        volume.write({"ca-bundle.crt": ""})
        wait_until("a reload", lambda: server.reloads("config") != before)
        expect("reloads accepted and rejected", (before[0], before[1] + 1),
               server.reloads("config"))
        expect("the answer", expected, server.answer())
    finally:
        volume.write(good)
        wait_until("a reload", lambda: server.reloads("config")[0] > before[0] + 1
                   or server.reloads("config")[1] > before[1])


def swaps_of(server):
    values = dict(server.manifest.find("ConfigMap", "linkerd-config")["data"])
    line = "  outboundConnectTimeout: 1000ms\n"
    expect_in("the values", line, values["values"])
    other = {**values, "values": values["values"].replace(line, line.replace("1000", "2000"))}
    # As if the file were written in place: it ends in the middle of a quoted value.
    cut = {**values, "values": values["values"][: values["values"].index('logHTTPHeaders: "') + 16]}
    roots = server.manifest.find("ConfigMap", "linkerd-identity-trust-roots")["data"]
    both = {"ca-bundle.crt": roots["ca-bundle.crt"] + "\n" + server.authority.path.read_text()}
    first, second, third = server.secrets
    torn = {**third, "tls.key": first["tls.key"]}
    return {
        "values": Swaps(server, "config", CONFIG, (values, other), cut),
        "trust roots": Swaps(server, "config", TRUST_ROOTS, (roots, both), {}),
        "TLS secret": Swaps(server, "tls", TLS, (first, second), torn, replaced=1),
    }


class Crowd:
    """Thousands of connections: their cost while they are open, and after."""

    def __init__(self, server, idle, busy, seconds):
        self.server, self.idle, self.busy, self.seconds = server, idle, busy, seconds
        self.rows = []

    def run(self):
        expected = [self.server.answer()]
        self.measure("before")
        idle, busy = self.server.clients(4), self.server.clients(2)
        total = Tally()
        try:
            begin = time.monotonic()
            total.add(idle.do("open", self.idle))
            self.measure(f"{self.idle} connections after their handshake", self.idle)
            opening = time.monotonic() - begin
            total.add(idle.do("ask"))
            self.measure("  and a review each", self.idle)
            total.add(busy.do("open", self.busy))
            busy.begin("load")
            time.sleep(self.seconds)
            self.measure(f"  and {self.busy} busy ones", self.idle + self.busy)
            load = busy.stop_load()
            total.add(load)
            # The server has not dropped any of them.
            total.add(idle.do("ask"))
            for clients in idle, busy:
                clients.do("close")
            self.measure("all closed")
            # As many again reuse the memory of the first.
            total.add(idle.do("open", self.idle))
            total.add(idle.do("ask"))
            self.measure(f"{self.idle} again, with a review each", self.idle)
            idle.do("close")
            self.measure("all closed again")
            time.sleep(SETTLING_SECONDS)
            self.measure(f"  {SETTLING_SECONDS} s later")
        finally:
            for clients in idle, busy:
                clients.close()
            print(self.table(), flush=True)
        total.expect_good(*map(set, zip(*expected)))
        expect("connections that could not be opened", 0, total.unsent)
        # The connection for metrics may be open.
        first, last = self.rows[0][3], self.rows[-1][3]
        expect_in("the descriptors after", last, range(first, first + 3))
        expect("the threads after", self.rows[0][2], self.rows[-1][2])
        return (f"{total.answered} reviews answered, 0 failed, 0 wrong; {self.idle} handshakes in "
                f"{opening:.0f} s; busy: {load.answered / self.seconds:.0f} reviews/s, "
                f"slowest {load.slowest * 1000:.0f} ms")

    def expect_open(self, count):
        found = metric(self.server.exposition.read(), "injectd_connections", server="webhook")
        expect("the open connections", count, found)

    def measure(self, when, connections=0):
        poll("the connections", lambda: self.expect_open(connections))
        container = self.server.container
        self.rows.append((when, container.rss_kib(), int(container.status("Threads")),
                          container.descriptors(), connections))

    def table(self):
        before = self.rows[0][1]
        lines = [f"  {'':40} {'RSS':>10} {'threads':>8} {'descriptors':>12} {'per connection':>15}"]
        for when, rss, threads, descriptors, connections in self.rows:
            each = f"{(rss - before) / connections:.1f} KiB" if connections else ""
            lines.append(
                f"  {when:40} {rss / 1024:6.1f} MiB {threads:8} {descriptors:12} {each:>15}")
        return "\n".join(lines)


def terminated_under_load(server, load):
    """SIGTERM under load: every review that was sent must be answered."""
    expected = [server.answer()]
    clients = server.clients()
    try:
        clients.begin(load, CONNECTIONS)
        begun = metric(server.exposition.read(), "injectd_reviews_total")
        enough = begun + 20 * CONNECTIONS
        wait_until("reviews", lambda: reviews(server) > enough)
        before = reviews(server)
        server.container.terminate()
        begin = time.monotonic()
        expect("the exit code", 0, server.container.wait())
        seconds = time.monotonic() - begin
        tally = clients.wait()
    finally:
        clients.close()
    tally.expect_good(*map(set, zip(*expected)))
    if tally.answered + begun <= before:
        raise Failure("no review was answered after SIGTERM")
    return (f"exit code 0 after {seconds:.1f} s; {tally.answered} reviews answered, about "
            f"{before - begun} of them before, over {tally.opened} connections; 0 failed, 0 wrong; "
            f"{tally.unsent} connections refused, or closed before a request was sent")


def reviews(server):
    return metric(server.exposition.read(), "injectd_reviews_total")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--swaps", type=int, default=1000)
    parser.add_argument("--idle", type=int, default=10000)
    parser.add_argument("--busy", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=5, help="length of the load")
    parser.add_argument("--only", action="append", choices=["swaps", "crowd", "end"])
    args = parser.parse_args()
    stop_in_time(TOTAL_SECONDS)
    limit, wanted = resource.getrlimit(resource.RLIMIT_NOFILE)[1], args.idle + args.busy + 200
    if limit < wanted:
        sys.exit(f"endurance: {wanted} descriptors are needed, the hard limit is {limit}")
    plain = [manifest for manifest in manifests() if not manifest.name.endswith("-ha")]
    [manifest] = plain[-1:] or sys.exit("endurance: no manifests in $INJECTD_CORPUS")
    steps = Steps()
    with tempfile.TemporaryDirectory() as folder:
        env = {"INJECTD_RELOAD_INTERVAL": "10ms",
               "INJECTD_MAX_CONNECTIONS": str(args.idle + args.busy + 1000)}
        for index, group in enumerate(groups(args)):
            server = Server(os.environ["INJECTD"], manifest, Path(folder) / str(index), env)
            try:
                steps.run("start", server.start)
                for name, step in group(server):
                    steps.run(name, step)
            finally:
                server.stop()
    return steps.end()


def groups(args):
    """Groups of steps by name; each group has a server of its own."""
    def swaps(server):
        for what, swaps in swaps_of(server).items():
            yield f"{what}: swapped under load", lambda: swaps.run(args.swaps, args.swaps)
        yield "an empty trust bundle is rejected", lambda: empty_bundle_is_rejected(server)

    def crowd(server):
        crowd = Crowd(server, args.idle, args.busy, args.seconds)
        yield "a crowd of connections", crowd.run

    def closed(server):
        yield "SIGTERM under load of kept-alive connections", lambda: terminated_under_load(
            server, "load_until_closed")

    def refused(server):
        yield "SIGTERM under load, with new connections until the end", (
            lambda: terminated_under_load(server, "load_until_refused"))

    chosen = {"swaps": [swaps], "crowd": [crowd], "end": [closed, refused]}
    return sum((chosen[name] for name in args.only or chosen), [])


if __name__ == "__main__":
    sys.exit(main())
