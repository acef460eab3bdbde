"""The attacks of attack_istio.py: each is a function that attacks the server of a `Bench`."""

import functools
import itertools
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Callable, NamedTuple

import attack_istio_bodies as bodies
import beside
import client
import http2
from attack_bodies import field, inject_request
from attack_istio import ANSWER_SECONDS, SPARE_BYTES, chart_bytes, cpu_seconds
from attack_load import LARGEST_WINDOW
from attack_measure import Measurement
from attackers import Attacker, Place
from connection import Connection, request_of, unverified_context  # loadtest/load
from expect import Failure
from http2 import DATA, END_STREAM, frame
from reviews import TYPICAL  # loadtest/load

FLOOD_SECONDS = 5
FLOODS = 2
# The answers of large bodies are not waited for longer.
LARGE_SECONDS = 15
MANY = 64
# Those that take the most memory before and during their evaluation.
LARGE_IN_SMOKE = (("Istio", "empty objects"), ("Linkerd", "additional variables"))
# SIGTERM: what the process may take, and how long a measurement waits.
GRACE = "--drain-delay=1s", "--drain-timeout=5s"
STARTED_SECONDS = 0.5
WORKLOADS, ROUNDS = 50, 20
# The names that fill what the answer memory once held in all.
SATURATING_PODS, SATURATING_NAMES = 33, 58
DESCRIPTORS, IDLE = 64, 177


class Attack(NamedTuple):
    """An attack: `run(bench)` returns counts of its answers."""

    name: str
    run: Callable
    is_istio: bool = True
    data_bytes: int = SPARE_BYTES
    limits: tuple = ()
    flags: tuple = ()
    in_smoke: bool = False
    # Whether the tenant and the probes run beside it.
    has_others: bool = True
    # The attack is about the end of the process.
    ends: bool = False


def at_once(name, make, count=1, in_smoke=False):
    """One body, as often as that at the same time."""
    return Attack(name + (f", {count} at once" if count > 1 else ""),
                  lambda bench: bench.ask_all([make()] * count), in_smoke=in_smoke)


def floods(name, connections, make):
    """Reviews of new pods without a pause, over so many connections."""
    def run(bench):
        until = time.monotonic() + FLOOD_SECONDS
        each = [beside.Process(flood, bench.server.address, bench.server.path,
                               connections // FLOODS, until, make, index)
                for index in range(FLOODS)]
        time.sleep(FLOOD_SECONDS)
        found = Counter()
        for process in each:
            found.update(process.result(beside.GIVES_UP_SECONDS) or {})
        return found

    return Attack(name, run)


def flood(_, address, path, connections, until, make, process):
    """The reviews of one process of a flood; counts of their statuses."""
    notes, counts, context = itertools.count(), Counter(), unverified_context()

    def repeat():
        connection = None
        while time.monotonic() < until:
            try:
                connection = connection or Connection(address, context)
                connection.tls.settimeout(beside.GIVES_UP_SECONDS)
                connection.send(request_of(make(f"{next(notes) * FLOODS + process + 1}m"), path))
                counts[str(connection.receive().status)] += 1
            except OSError as error:
                counts[type(error).__name__] += 1
                connection = None

    threads = [threading.Thread(target=repeat, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return dict(counts)


# --- the answer memory between tenants ---


def workloads():
    """A review of each of the tenants' workloads, which differ in their namespaces."""
    typical = TYPICAL.read_bytes()
    for index in range(WORKLOADS):
        yield typical.replace(b'"namespace":"fulfilment"', b'"namespace":"tenant-%d"' % index)


def new_names_between(bench):
    """One pod with a new name of a volume before each round of known reviews of other tenants."""
    known, connection = list(workloads()), Connection(bench.server.address, bench.context)
    for body in known:
        bench.ask(body, connection=connection)
    before, answers = bench.count_hits(), Counter()
    for number in range(ROUNDS):
        answers[bench.ask(bodies.volumes([f"new-{number}"]), connection=connection)] += 1
        for body in known:
            answers[bench.ask(body, connection=connection)] += 1
    return with_hits(bench, before, ROUNDS * WORKLOADS, answers, connection)


def saturating_names(bench):
    """Pods with so many names that what reads more was never kept again."""
    connection, answers = Connection(bench.server.address, bench.context), Counter()
    for number in range(SATURATING_PODS):
        names = [f"fill-{number}-{index}" for index in range(SATURATING_NAMES)]
        answers[bench.ask(bodies.volumes(names), connection=connection)] += 1
    # Until not one more name fits.
    for number in range(2 * SATURATING_NAMES):
        answers[bench.ask(bodies.volumes([f"last-{number}"]), connection=connection)] += 1
    known = [bodies.volumes(["cache"], f"tenant-{index}") for index in range(WORKLOADS)]
    for body in known:
        answers[bench.ask(body, connection=connection)] += 1
    before = bench.count_hits()
    for body in known * 2:
        answers[bench.ask(body, connection=connection)] += 1
    return with_hits(bench, before, 2 * WORKLOADS, answers, connection)


def with_hits(bench, before, count, answers, connection):
    bench.hits = f"{bench.count_hits() - before} of {count} (workloads of others)"
    connection.close()
    return answers


def new_names(per_second):
    """So many pods per second, each with a new name of a volume."""
    def run(bench):
        connection, answers = Connection(bench.server.address, bench.context), Counter()
        begin = time.monotonic()
        for number in itertools.count():
            due = begin + number / per_second if per_second else begin + FLOOD_SECONDS
            time.sleep(max(0, due - time.monotonic()))
            if due >= begin + FLOOD_SECONDS:
                break
            answers[bench.ask(bodies.volumes([f"n-{number}"]), connection=connection)] += 1
        connection.close()
        return answers

    return run


# --- the end of the process, memory, descriptors, explanations ---


def terminated(name, *make):
    """SIGTERM while such bodies are evaluated."""
    def run(bench):
        made = [each() for each in make]
        asking = threading.Thread(target=bench.ask_all, args=(made,), daemon=True)
        asking.start()
        time.sleep(STARTED_SECONDS)
        begin = time.monotonic()
        bench.server.process.send_signal(signal.SIGTERM)
        try:
            bench.server.process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            return Counter([f"still runs after {ANSWER_SECONDS} s"])
        return Counter([f"ended after {time.monotonic() - begin:.1f} s"])

    return Attack(f"SIGTERM (grace {' '.join(GRACE)}): {name}", run, flags=GRACE, ends=True)


def large_bodies():
    """Bodies of up to 10 MiB under the chart's limit: alone, then many at once."""
    for is_istio in (True, False):
        for shape, make in bodies.large_shapes(is_istio).items():
            def run(bench, make=make):
                body = make()
                alone = bench.ask_all([body], LARGE_SECONDS)
                if bench.server.process.poll() is not None:
                    return alone
                many = bench.ask_all([body] * MANY, LARGE_SECONDS)
                bench.note = f"{text(alone)}; {MANY} at once: {text(many)}"
                return many

            mesh = "Istio" if is_istio else "Linkerd"
            yield Attack(f"{mesh}, chart's limit, 10 MiB: {shape}", run, is_istio=is_istio,
                         data_bytes=chart_bytes(), in_smoke=(mesh, shape) in LARGE_IN_SMOKE)


def text(answers):
    return ", ".join(f"{outcome} × {count}" for outcome, count in answers.items())


def idle_connections(bench):
    """More connections than descriptors; then probes, metrics, and a review of a kept one."""
    kept, host = Connection(bench.server.address, bench.context), client.HOST
    bench.ask(TYPICAL.read_bytes(), connection=kept)
    port, admin = (int(address.rpartition(":")[2])
                   for address in (bench.server.address, bench.server.admin))
    idle, answers = [], Counter()
    for _ in range(IDLE):
        try:
            idle.append(socket.create_connection((host, port), 1))
        except OSError:
            break  # The queue of the listener is full.
    for path in "/ready", "/metrics":
        try:
            answers[f"{path} {client.get(admin, path, 2)[0]}"] += 1
        except Failure:
            answers[f"{path} no answer"] += 1
    answers["kept: " + bench.ask(TYPICAL.read_bytes(), 5, kept)] += 1
    for each in idle:
        each.close()
    return answers


def explained(name, make, is_istio=True):
    """The same pod with `Inject` and with `Explain` over gRPC."""
    def run(bench):
        message = inject_request(bodies.compact(make()))
        answers = Counter()
        for call, data in ("Inject", message), ("Explain", field(1, message)):
            before = cpu_seconds(bench.server)
            length = length_of_answer(bench, f"/injectd.v1.Injector/{call}", data)
            cpu = cpu_seconds(bench.server) - before
            answers[f"{call} {cpu:.2f} s CPU, {length:,} bytes"] += 1
        return answers

    mesh = "Istio" if is_istio else "Linkerd"
    return Attack(f"{mesh}, Explain beside Inject: {name}", run, is_istio)


def length_of_answer(bench, path, data):
    """Calls a method of the gRPC server; returns the length of its answer."""
    address = bench.server.grpc
    with tempfile.TemporaryDirectory() as folder:
        place = Place(address, Measurement.certificate(address, Path(folder)))
        connection = Attacker(place, window=LARGEST_WINDOW)
    connection.send(frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", LARGEST_WINDOW - 65_535)))
    (stream,) = connection.begin(1)
    connection.open(stream, path)
    connection.write(stream, http2.message(data), patience=ANSWER_SECONDS)
    connection.send(frame(DATA, END_STREAM, stream, b""))
    until = time.monotonic() + ANSWER_SECONDS
    while not (connection.is_over or connection.has_ended(stream)) and time.monotonic() < until:
        connection.read(0.01)
    connection.close()
    return connection.data_bytes


def list_of_attacks():
    """All attacks in the order of the table."""
    templates = functools.partial(functools.partial, bodies.repeated_template)
    containers = functools.partial(functools.partial, bodies.many_containers)
    for count in 40, 1_000, 2_000, 4_000, 12_500, 50_000:
        yield at_once(f"{count:,} templates", templates(count), in_smoke=count <= 1_000)
    yield at_once("2,000 templates", templates(2_000), 2)
    yield at_once("40 templates", templates(40), 60)
    yield Attack("chart's limit: 4,000 templates",
                 lambda bench: bench.ask_all([bodies.repeated_template(4_000)]),
                 data_bytes=chart_bytes(), in_smoke=True)
    for template in "grpc-simple", "grpc-agent":
        for count in 240, 480, 1_000, 2_000, 4_000:
            yield at_once(f"{template}, {count:,} containers", containers(template, count),
                          in_smoke=count == 1_000)
    yield at_once("grpc-simple, 4,000 containers", containers("grpc-simple", 4_000), 4)
    shapes = (("250 anchors of proxy.istio.io/config", bodies.nested_anchors),
              ("texts in quotes of proxy.istio.io/config", bodies.quoted_texts),
              ("85,000 keys of proxy.istio.io/config", bodies.many_keys),
              ("200,000 labels", bodies.many_labels),
              ("48,000 volumes of userVolume", bodies.many_volumes))
    for name, make in shapes:
        yield at_once(name, make)
        yield at_once(name, make, 4)
        yield Attack(f"chart's limit: {name}, 4 at once",
                     lambda bench, make=make: bench.ask_all([make()] * 4),
                     data_bytes=chart_bytes(), in_smoke=make is bodies.many_keys)
    yield Attack("memory: a new name before every 50 known reviews", new_names_between,
                 has_others=False, in_smoke=True)
    yield Attack("memory: 2,030 names that pods chose", saturating_names,
                 has_others=False, in_smoke=True)
    for rate in 0, 1, 33:
        yield Attack(f"memory: {rate} new names a second", new_names(rate))
    yield floods("flood of new pods, 16 connections", 16, bodies.new_pod)
    yield floods("flood of 40 templates each, 60 connections", 60, bodies.new_templates)
    for count in 2_000, 4_000, 8_000, 50_000:
        yield at_once(f"status of {count:,} containers",
                      functools.partial(bodies.stripped_names, count))
    for length in 64 << 10, 256 << 10, 1 << 20, 3 << 20:
        yield at_once(f"{length >> 10:,} KiB of pasted containers",
                      functools.partial(bodies.pasted_containers, length),
                      in_smoke=length == 64 << 10)
    for length in 64 << 10, 256 << 10, 1 << 20:
        yield at_once(f"{length >> 10:,} KiB of pasted containers with 1,000 names",
                      functools.partial(bodies.pasted_containers, length, 1_000))
    yield terminated("2 × 12,000 templates", templates(12_000), templates(12_000))
    yield terminated("1 MiB of pasted containers with 1,000 names",
                     functools.partial(bodies.pasted_containers, 1 << 20, 1_000))
    yield Attack("177 idle connections, 64 descriptors", idle_connections,
                 limits=(f"--nofile={DESCRIPTORS}:{DESCRIPTORS}",), has_others=False, in_smoke=True)
    yield explained("1.1 MB of unknown annotations", bodies.unknown_annotations)
    yield explained("0.96 MB of proxy.istio.io/config", bodies.large_proxy_config)
    yield explained("1.1 MB of unknown annotations", bodies.unknown_of_linkerd, is_istio=False)
    yield from large_bodies()
