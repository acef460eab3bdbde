"""Cold paths: reviews whose template is not compiled yet, beside hot reviews.

The first review after a start, after a reload and of a set of overrides; a thousand sets; and
random overrides as an attack, beside the reviews of other clients.
"""

import multiprocessing
import random
import tempfile
import time
from pathlib import Path

from connection import Connection, request_of, unverified_context
from h2load import h2load
from paced import Load, paced
from results import micros, p50_p99, part, percentile, write_csv
from reviews import TYPICAL, with_override
from servers import Failure, injectd

TIMEOUT = "config.linkerd.io/proxy-outbound-connect-timeout"
PORTS = "config.linkerd.io/skip-outbound-ports"
# Makes a key of overrides above 4 KiB, whose template is compiled but not cached.
LONG_VALUE_PORTS = 900
ATTACKERS = 2
RELOAD_SECONDS = 10
DEFAULT_VALUES = Path(__file__).parent.parent.parent / "crates/core/src/linkerd/values/default.yaml"
VALUE = "  outboundConnectTimeout: 1000ms\n"


class Table:
    """Times by kind of review, beside those of hot reviews."""

    def __init__(self):
        self.rows, self.hot, self.raw = [], None, []

    def add(self, what, times, server, notes=""):
        p50 = percentile(times, 0.5)
        self.hot = self.hot or p50
        self.rows.append([what, len(times), *p50_p99(times), f"{p50 / self.hot:.1f}",
                          f"{server.rss_mib():.0f} MiB" if server else "", notes])
        self.raw.append([what, len(times), round(p50 * 1e6), round(percentile(times, 0.99) * 1e6),
                         round(server.rss_mib(), 1) if server else ""])


def run(args, report):
    few = args.smoke
    body, table = TYPICAL.read_bytes(), Table()
    with injectd() as server:
        hot_and_new(table, server, body, 100 if few else 1000)
    after_start(table, body, 3 if few else 30)
    after_reload(table, body, 2 if few else 30)
    report.table("Cold reviews of 12 KB, one connection, one at a time", [
        "review", "times", "p50", "p99", "p50 ÷ hot", "RSS after", ""], table.rows,
        ["Times do not include the connection and its handshake."])
    write_csv(args.out / "cold.csv", ["review", "times", "p50_us", "p99_us", "rss_mib"], table.raw)
    attacks(args, report, body)


def hot_and_new(table, server, body, count):
    """Hot reviews, then sets of overrides: new ones, and the same again."""
    connection, plain = Connection(server.address, unverified_context()), request_of(body)
    for _ in range(count):
        connection.ask(plain)
    table.add("hot", [connection.ask(plain) for _ in range(2 * count)], server)
    requests = [request_of(with_override(body, TIMEOUT, f"{1001 + index}ms"))
                for index in range(count)]
    missed = server.metric("injectd_cache_misses_total", cache="templates")
    for name in f"{count:,} new sets of overrides", "the same sets again":
        times = [connection.ask(request) for request in requests]
        misses = server.metric("injectd_cache_misses_total", cache="templates") - missed
        missed += misses
        table.add(name, times, server, f"{misses} compiled")
    table.add("hot, after those", [connection.ask(plain) for _ in range(2 * count)], server)
    connection.close()


def after_start(table, body, count):
    """The first review of a process, and the time from its start to the answer."""
    first, second, whole = [], [], []
    for _ in range(count):
        with injectd() as server:
            connection = Connection(server.address, unverified_context())
            first.append(connection.ask(request_of(body)))
            whole.append(time.perf_counter() - server.begin)
            second.append(connection.ask(request_of(body)))
            connection.close()
    table.add("the first after a start", first, None,
              f"answered {micros(percentile(whole, 0.5))} after the process was started (p50)")
    table.add("the second", second, None)


def after_reload(table, body, count):
    """The first review after a reload of the values."""
    text = DEFAULT_VALUES.read_text()
    if VALUE not in text:
        raise Failure(f"{DEFAULT_VALUES.name} has no line {VALUE!r}")
    first, second = [], []
    with tempfile.TemporaryDirectory() as folder:
        values = Path(folder) / "values.yaml"
        values.write_text(text)
        with injectd("--values", str(values), "--reload-interval", "20ms") as server:
            connection = Connection(server.address, unverified_context())
            connection.ask(request_of(body))
            for index in range(count):
                replace(values, text.replace(VALUE, VALUE.replace("1000", str(1001 + index))))
                await_reload(server, index + 1)
                first.append(connection.ask(request_of(body)))
                second.append(connection.ask(request_of(body)))
            connection.close()
            table.add("the first after a reload of the values", first, server)
            table.add("the second", second, server)


def replace(path, text):
    """Replaces a file atomically."""
    other = path.with_suffix(".new")
    other.write_text(text)
    other.rename(path)


def await_reload(server, count):
    deadline = time.monotonic() + RELOAD_SECONDS
    while server.metric("injectd_reloads_total", what="config", result="applied") < count:
        if time.monotonic() > deadline:
            raise Failure(f"no reload {count} within {RELOAD_SECONDS} s")
        time.sleep(0.005)


# --- attacks ---


def attacks(args, report, body):
    """Reviews at a constant rate while two attackers send overrides that are never repeated."""
    seconds = 0.5 if args.smoke else 15
    rows = []
    with injectd() as server:
        rate = h2load(server, TYPICAL, 16, "-D", 1).rate / 10
    for name, make in {"none": None, "short values": short_value, "values above 4 KiB": long_value,
                       "invalid values": wrong_value}.items():
        with injectd() as server:
            rows.append([name, *attacked(server, body, rate, seconds, make)])
    report.table("Overrides that are never repeated, from two attackers in closed loops", [
        "attack", "its reviews /s", "CPU each", "p50", "p99", "compiled", "cached after",
        "other clients: /s", "p50", "p99", "RSS", "RSS peak"], rows,
        ["The other clients send the 12 KB review without overrides at a tenth of the peak, over 25"
         " connections."])


def attacked(server, body, rate, seconds, make):
    """A row: the figures of the attack, and those of the other clients."""
    before = server.cpu_seconds()
    alone = paced(server.address, rate, seconds / 5)
    each = (server.cpu_seconds() - before) / len(alone.latencies)
    missed = server.metric("injectd_cache_misses_total", cache="templates")
    before = server.cpu_seconds()
    load = Load(server.address, rate, seconds)
    times = attack(server.address, body, make, seconds) if make else []
    others = load.result()
    cpu = server.cpu_seconds() - before - each * len(others.latencies)
    kept = server.metric("injectd_cache_entries", cache="templates")
    misses = server.metric("injectd_cache_misses_total", cache="templates") - missed
    cells = ["", "", "", ""]
    if times:
        cells = [f"{len(times) / seconds:,.0f}", micros(cpu / len(times)), *p50_p99(times)]
    return [*cells, misses, kept, f"{others.rate:,.0f}", *p50_p99(others.latencies),
            f"{server.rss_mib():.0f} MiB", f"{server.rss_mib('VmHWM'):.0f} MiB"]


def attack(address, body, make, seconds):
    context = multiprocessing.get_context("fork")
    workers, times = [], []
    for seed in range(ATTACKERS):
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=attacker, daemon=True,
                                 args=(theirs, seed, address, body, make, seconds))
        worker.start()
        theirs.close()
        workers.append((worker, ours))
    for worker, pipe in workers:
        times += pipe.recv()
        worker.join()
    return times


def attacker(pipe, seed, address, body, make, seconds):
    connection, values = Connection(address, unverified_context()), random.Random(seed)
    end, times = time.monotonic() + seconds, []
    while time.monotonic() < end:
        key, value = make(values)
        times.append(connection.ask(request_of(with_override(body, key, value))))
    connection.close()
    pipe.send(times)


def short_value(values):
    return TIMEOUT, f"{values.randrange(1, 1 << 40)}ms"


def long_value(values):
    return PORTS, ",".join(str(values.randrange(1, 65_536)) for _ in range(LONG_VALUE_PORTS))


def wrong_value(values):
    """Not a duration: answered with a warning, or denied."""
    return TIMEOUT, f"{values.randrange(1 << 40):x} soon"


if __name__ == "__main__":
    raise SystemExit(part("cold", run))
