"""CPU per review and rate, beside the echo's: both answer in turn under the same load.

They take turns several times in a round, because a shared machine changes its speed from one second to
the next. The figure that counts is CPU per request, injectd's ÷ the echo's: rates and times move with
the machine, the ratio hardly does. Alone: `just rounds`.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from connection import Connection, request_of, unverified_context
from h2load import h2load
from results import median, part, write_csv
from reviews import TYPICAL
from servers import Failure, echo, injectd

CPU_BUDGET, CPU_AIM, RATE_BUDGET = 1.6, 1.3, 0.65
# A smoke fails above it.
MAX_RATIO = 5
# The lowest recorded CPU of Linkerd's own injector ÷ echo.
LINKERD_ECHOES = 730
LINKERD_BUDGET = 1 / 450
COLUMNS = ["round", "echo_per_second", "echo_cpu_us", "injectd_per_second", "injectd_cpu_us"]


class Round(NamedTuple):
    """Requests per second, and CPU of a request in µs, of all turns."""

    echo_rate: float
    echo_cpu: float
    rate: float
    cpu: float

    def ratio(self):
        return self.cpu / self.echo_cpu


def options(parser):
    parser.add_argument("--rounds", type=int, default=3, help="figures are their medians [3]")
    parser.add_argument("--turns", type=int, default=5, help="turns of a round, each of both [5]")
    parser.add_argument("--seconds", type=int, default=1, help="length of a turn [1]")
    parser.add_argument("--requests", type=int, help="requests of a turn, instead of its length")
    parser.add_argument("--connections", type=int, default=16, help="kept-alive HTTP/1.1 [16]")
    parser.add_argument("--review", type=Path, default=TYPICAL, help="the AdmissionReview")


def run(args, report):
    if args.smoke:
        args.turns, args.seconds, args.requests = 1, 1, None
    extent = ["-n", args.requests] if args.requests else ["-D", args.seconds]
    print(machine(), flush=True)
    with echo(args.review) as base, injectd() as ours:
        expect_injected(ours, args.review)
        for server in base, ours:
            h2load(server, args.review, args.connections, "-n", 2000)
        rounds = []
        for index in range(1, args.rounds + 1):
            turns = [[h2load(server, args.review, args.connections, *extent)
                      for server in (base, ours)] for _ in range(args.turns)]
            rounds.append(Round(*(figure for runs in zip(*turns) for figure in all_of(runs))))
            print(line(index, rounds[-1]), flush=True)
    if args.out:
        write_csv(args.out / "rounds.csv", COLUMNS,
                  [[index, *(round(figure, 1) for figure in each)]
                   for index, each in enumerate(rounds, 1)])
    add_results(report, rounds, args)
    if args.smoke and report.facts["cpu_ratio"] > MAX_RATIO:
        raise Failure(f"the ratio is above {MAX_RATIO}")


def machine():
    model = re.search(r"^model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return (f"machine: {os.cpu_count()} cores, {model[1] if model else 'unknown'}; client on the"
            f" same cores; load average {os.getloadavg()[0]:.2f} before")


def expect_injected(server, review):
    connection = Connection(server.address, unverified_context())
    _, answer = connection.answer(request_of(review.read_bytes()))
    connection.close()
    if b'"patch":"' not in answer:
        raise Failure(f"injectd does not inject the pod of {review}")


def all_of(runs):
    """Rate and CPU of all runs together."""
    done = sum(run.done for run in runs)
    return (done / sum(run.done / run.rate for run in runs),
            sum(run.cpu * run.done for run in runs) / done * 1e6)


def line(index, found):
    return (f"round {index}: echo {found.echo_rate:.0f} requests/s, {found.echo_cpu:.1f} µs;"
            f" injectd {found.rate:.0f} requests/s, {found.cpu:.1f} µs; ratio {found.ratio():.2f}")


def add_results(report, rounds, args):
    title = (f"Closed loop, {args.connections} connections, {args.review.stat().st_size:,} bytes,"
             f" {args.turns} turns each")
    report.table(title, [
        "round", "echo requests/s", "echo CPU µs", "injectd reviews/s", "injectd CPU µs",
        "CPU ÷ echo", "rate ÷ echo"],
        [[index, f"{each.echo_rate:,.0f}", f"{each.echo_cpu:.1f}", f"{each.rate:,.0f}",
          f"{each.cpu:.1f}", f"{each.ratio():.2f}", f"{each.rate / each.echo_rate:.2f}"]
         for index, each in enumerate(rounds, 1)])
    cpu = median([each.ratio() for each in rounds])
    rate = median([each.rate / each.echo_rate for each in rounds])
    report.facts["cpu_ratio"], report.facts["rate_ratio"] = cpu, rate
    of_echo = "echo = 1"
    report.budget("CPU per injected 12 KB review ÷ echo", cpu, most=CPU_BUDGET, baseline=of_echo)
    report.budget("the same, aim", cpu, most=CPU_AIM, baseline=of_echo)
    report.budget("CPU per review ÷ that of Linkerd's injector, as recorded", cpu / LINKERD_ECHOES,
                  most=LINKERD_BUDGET, form="{:.5f}", baseline=f"{LINKERD_ECHOES} × echo, at best")
    report.budget("rate ÷ echo, 16 connections", rate, least=RATE_BUDGET, baseline=of_echo)


if __name__ == "__main__":
    raise SystemExit(part("rounds", run, options))
