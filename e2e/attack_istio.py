"""Attacks on evaluations of Istio's templates, beside a well-behaved tenant (attack.py --istio).

Each attack has a server of its own, with a limit of its memory, so that the machine survives. The
tenant sends a review every 20 ms over a kept connection: pods whose answer is known, and in one of
five a pod that has to be evaluated. Another process requests /live and /ready.
"""

import itertools
import json
import re
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import beside
import servers  # loadtest/load
from attack_measure import Watch
from connection import Connection, request_of, unverified_context  # loadtest/load
from expect import Failure
from results import percentile  # loadtest/load
from reviews import TYPICAL, with_override  # loadtest/load

# The longest wait for the answers of an attack.
ANSWER_SECONDS = 60
QUIET_SECONDS = 1
TENANT_SECONDS = 0.02
# One of as many reviews of the tenant has to be evaluated.
COLD_ONE_IN = 5
COLD_ANNOTATION = "sidecar.istio.io/proxyCPU"
# For attacks without the chart's limit: what the machine can spare.
SPARE_BYTES = 4 << 30
CHART = servers.ROOT / "deploy/helm/injectd/values.yaml"
SUFFIXES = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
COLUMNS = ("attack", "CPU, s", "peak RSS, MiB", "answers", "tenant p99 / longest, ms",
           "tenant refused", "tenant hits", "worst probe, ms", "at the end")


def chart_bytes():
    """The memory limit of the chart."""
    number, suffix = re.search(r"limits: \{memory: (\d+)(\w+)\}", CHART.read_text()).groups()
    return int(number) * SUFFIXES[suffix]


def run(attacks, path, before):
    """Measures attacks; prints their rows, and writes a table, beside an earlier one if any."""
    rows = []
    for attack in attacks:
        row = Bench(attack).run()
        rows.append([attack.name, *row])
        print(" | ".join(rows[-1]), flush=True)
        if path:
            path.write_text(table(rows, read(before) if before else None))
    ends = {attack.name for attack in attacks if attack.ends}
    ended = [row[0] for row in rows if row[-1].startswith("ended") and row[0] not in ends]
    print(f"{len(rows)} attacks, {len(ended)} ended the process: {'; '.join(ended) or 'none'}")
    return int(bool(ended) or not rows)


class Bench:
    """The server of an attack, and what runs beside it."""

    def __init__(self, attack):
        self.attack, self.hits, self.note, self.last_cpu = attack, None, "", 0.0
        start = servers.injectd_for_istio if attack.is_istio else servers.injectd
        limit = (f"--data={attack.data_bytes}", *attack.limits)
        self.server = start(*attack.flags, grpc_addr="127.0.0.1:0", prefix=("prlimit", *limit))
        self.watch = Watch(self.server)
        self.context = unverified_context()

    def run(self):
        """The cells of the attack's row."""
        ends = time.monotonic() + 3 * ANSWER_SECONDS
        tenant = probes = None
        if self.attack.has_others:
            tenant = beside.Process(tenant_reviews, self.server.address, self.server.path, ends)
            probes = beside.Process(beside.probes, self.server.admin, ends)
        try:
            time.sleep(QUIET_SECONDS)
            begin, cpu, hits = time.monotonic(), cpu_seconds(self.server), self.count_hits()
            answers = self.attack.run(self)
            cpu = (cpu_seconds(self.server) or self.last_cpu) - cpu
            after = self.count_hits()
            hits = after - hits if after is not None else None
            end = time.monotonic()
        finally:
            samples, probed = (result_of(other) for other in (tenant, probes))
            state = self.state()
            _, peak, _ = self.watch.end()
            self.server.process.kill()
            self.server.stop()
        cells = [f"{cpu:.2f}", f"{peak:.0f}",
                 self.note or ", ".join(f"{text} × {count}" for text, count in answers.items())]
        cells += tenant_cells([one for one in samples if begin <= one[0].begin < end], hits)
        if self.hits:
            cells[-1] = self.hits
        return [*cells, probe_cell([one for one in probed if begin <= one.begin < end]), state]

    def count_hits(self):
        """Answers from memory so far; None if the server does not say."""
        try:
            return self.server.metric("injectd_cache_hits_total", cache="templates")
        except (Failure, OSError):
            return None

    def state(self):
        """How the process ended; or that it answers, if it does."""
        if (code := self.server.process.poll()) is not None:
            return f"ended: {signal.Signals(-code).name if code < 0 else f'exit {code}'}"
        return "serves"

    def ask_all(self, bodies, seconds=ANSWER_SECONDS):
        """Sends each body over a connection of its own, all at once; counts of the outcomes."""
        found, answers = [None] * len(bodies), Counter()

        def ask(index, body):
            found[index] = self.ask(body, seconds)

        threads = [threading.Thread(target=ask, args=numbered, daemon=True)
                   for numbered in enumerate(bodies)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + seconds
        for thread in threads:
            while thread.is_alive() and time.monotonic() < until:
                thread.join(0.1)
                self.last_cpu = cpu_seconds(self.server) or self.last_cpu
        answers.update(outcome or f"no answer in {seconds} s" for outcome in found)
        return answers

    def ask(self, body, seconds=ANSWER_SECONDS, connection=None):
        """Sends a review; returns the outcome as a text."""
        own = connection is None
        try:
            connection = connection or Connection(self.server.address, self.context)
            connection.tls.settimeout(seconds)
            connection.send(request_of(body, self.server.path))
            answer = connection.receive()
        except TimeoutError:
            return f"no answer in {seconds} s"
        except OSError:
            return "connection closed"
        finally:
            if own and connection:
                connection.close()
        return outcome(answer)


def outcome(answer):
    """The status of an answer, and what it says about the pod."""
    if answer.status != 200:
        return str(answer.status)
    response = json.loads(answer.body)["response"]
    if not response["allowed"]:
        return f"denied ({' '.join(response['status']['message'].split())[:70]})"
    return "injected" if "patch" in response else "skipped"


# --- beside the attack ---


def result_of(process):
    """Ends a process, and returns its samples."""
    if not process:
        return []
    process.send("end")
    return process.result(beside.GIVES_UP_SECONDS + 1, [])


def tenant_reviews(pipe, address, path, ends):
    """Reviews of a well-behaved tenant, until `pipe` has a message: samples, and if cold."""
    warm = request_of(TYPICAL.read_bytes(), path)
    caller, samples = beside.Caller(address, ends), []
    for index in itertools.count():
        is_cold = index % COLD_ONE_IN == COLD_ONE_IN - 1
        request = warm
        if is_cold:
            body = with_override(TYPICAL.read_bytes(), COLD_ANNOTATION, f"{index + 1}m")
            request = request_of(body, path)
        sample = caller.ask(request)
        samples.append((sample, is_cold))
        pause = max(0, sample.begin + TENANT_SECONDS - time.monotonic())
        if pipe.poll(pause) or time.monotonic() > ends:
            break
    caller.close()
    return samples


def tenant_cells(samples, hits):
    """p99 and longest time, refusals, and answers from memory of the well-behaved tenant."""
    if not samples:
        return ["-", "-", "-"]
    times = [sample.seconds for sample, _ in samples]
    refused = sum(bool(sample.problem) for sample, _ in samples)
    warm = sum(not is_cold for _, is_cold in samples)
    return [f"{percentile(times, 0.99) * 1e3:,.0f} / {max(times) * 1e3:,.0f}",
            f"{refused} of {len(samples)}",
            "-" if hits is None else f"{min(hits, warm)} of {warm}"]


def probe_cell(probed):
    if not probed:
        return "-"
    problems = sum(bool(sample.problem) for sample in probed)
    worst = max((sample.seconds for sample in probed), default=0) * 1e3
    return f"{worst:,.0f}" + (f", {problems} of {len(probed)} failed" if problems else "")


def cpu_seconds(server):
    """CPU time so far, that of threads which have ended included; None after its end."""
    try:
        fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    ticks = int(fields[11]) + int(fields[12])
    return ticks / 100 if fields[0] != "Z" else None


# --- the table ---


def table(rows, before=None):
    """The rows in Markdown; with an earlier table two lines for each attack."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for row in rows:
        if earlier := (before or {}).get(row[0]):
            lines.append("| " + " | ".join([f"{row[0]}: before", *earlier]) + " |")
            row = ["after", *row[1:]]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def read(path):
    """The rows of a table by the names of their attacks."""
    lines = [line.strip("| \n").split(" | ") for line in path.read_text().splitlines()[2:]]
    return {cells[0]: cells[1:] for cells in lines}
