"""Reviews by Istio's injector beside the echo; the share that is answered from memory.

The echo sends as many bytes as injectd. Cold reviews are pods whose annotation has a value that no
other has, so that the templates are evaluated for each. `istio_limits` measures long lists, nodes
and overload. With `$INJECTD_CORPUS`, the configuration is that of a real Istio.
"""

import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import istio_limits
from connection import Connection, Exposition, metric, request_of, unverified_context
from h2load import h2load
from paced import CONNECTIONS, ENDLESS, Asked, paced
from results import median, micros, part, write_csv
from reviews import TYPICAL, encode, of_many_containers, with_override
from servers import CORPUS, ISTIO_RELEASE, Failure, echo, injectd_for_istio
from workloads import KINDS, Workloads

CPU_BUDGET, CPU_AIM, COLD_BUDGET, LARGE_BUDGET = 4, 2.5, 25, 8
SHARE_BUDGET = 0.95
FEW = 16
SERIAL = istio_limits.SERIAL
COLD_ANNOTATION = "sidecar.istio.io/proxyCPU", f"{SERIAL}m"


def run(args, report):
    with tempfile.TemporaryDirectory() as name:
        asked = reviews(Path(name))
        beside_the_echo(args, report, asked)
        from_memory(args, report)
        istio_limits.variables(args, report)
        istio_limits.nodes(args, report, asked["cold"], cpu_of)
        istio_limits.overload(args, report, asked)


def reviews(folder):
    """The reviews by name: one pod of 12 KB, one of 68 KB, and pods of which no two are alike."""
    large, cold = folder / "large.json", folder / "cold.json"
    large.write_bytes(encode(of_many_containers()))
    cold.write_bytes(with_override(TYPICAL.read_bytes(), *COLD_ANNOTATION))
    return {"warm": Asked(TYPICAL, "/inject"), "large": Asked(large, "/inject"),
            "cold": Asked(cold, "/inject", SERIAL)}


# --- CPU ---


class Cpu(NamedTuple):
    """A closed loop: CPU of a request in seconds, and requests per second."""

    cpu: float
    rate: float


def cpu_of(server, asked, seconds):
    """Asks a server for some seconds over connections that are always busy."""
    if not asked.serial:
        found = h2load(server, asked.review, FEW, "-D", seconds)
        return Cpu(found.cpu, found.rate)
    before = server.cpu_seconds()
    found = paced(server.address, ENDLESS, seconds, asked=asked)
    # Each connection opens with a review of which the time is not taken.
    done = len(found.latencies) + CONNECTIONS
    return Cpu((server.cpu_seconds() - before) / done, found.rate)


def beside_the_echo(args, report, asked):
    rounds, seconds = (1, 1) if args.smoke else (7, 2)
    rows, ratios, raw = [], {}, []
    with injectd_for_istio() as ours:
        for name in "warm", "large", "cold":
            this = asked[name]
            body = this.review.read_bytes()
            length = len(answer_of(ours, body))
            with echo(this.review, length) as base:
                pairs = []
                for index in range(rounds + 1):
                    pair = cpu_of(base, this, seconds), cpu_of(ours, this, seconds)
                    # The first warms up.
                    if index > 0 or args.smoke:
                        pairs.append(pair)
            ratios[name] = median([mine.cpu / its.cpu for its, mine in pairs])
            echo_cpu, cpu = (median([pair[which].cpu for pair in pairs]) for which in (0, 1))
            rate = median([mine.rate for _, mine in pairs])
            rows.append([name, f"{len(body):,}", f"{length:,}", micros(echo_cpu), micros(cpu),
                         f"{ratios[name]:.2f}", f"{rate:,.0f}", f"{ours.rss_mib():.0f} MiB"])
            raw += [[name, index, *(round(each.cpu * 1e6, 1) for each in pair)]
                    for index, pair in enumerate(pairs, 1)]
    report.table("Istio: CPU beside an echo that sends as many bytes", [
        "reviews", "bytes", "bytes of the answer", "echo CPU", "injectd CPU", "CPU ÷ echo",
        "injectd /s", "RSS after"], rows,
        [f"Configuration: {configuration()}. Medians of the rounds, each of the echo and of"
         " injectd. Warm: one pod of 12 KB. Large: one pod of twenty containers. Cold: pods of"
         " 12 KB of which no two have the same annotation."])
    write_csv(args.out / "istio.csv", ["reviews", "round", "echo_cpu_us", "injectd_cpu_us"], raw)
    budgets(report, ratios)


def budgets(report, ratios):
    of_echo = f"echo = 1; {configuration()}"
    report.budget("Istio: CPU per injected 12 KB pod, memory warm ÷ echo", ratios["warm"],
                  most=CPU_BUDGET, baseline=of_echo)
    report.budget("the same, aim", ratios["warm"], most=CPU_AIM, baseline=of_echo)
    report.budget("Istio: CPU per 12 KB pod of which no two are alike ÷ echo", ratios["cold"],
                  most=COLD_BUDGET, baseline=of_echo)
    report.budget("Istio: CPU per pod of 68 KB and 20 containers ÷ echo", ratios["large"],
                  most=LARGE_BUDGET, baseline=of_echo)


def answer_of(server, body):
    connection = Connection(server.address, unverified_context())
    _, answer = connection.answer(request_of(body, server.path))
    connection.close()
    if b'"patch":"' not in answer:
        raise Failure(f"the pod was not injected: {answer[:300]}")
    return answer


def configuration():
    return f"Istio {ISTIO_RELEASE}" if CORPUS else "small ($INJECTD_CORPUS is not set)"


# --- memory ---


def from_memory(args, report):
    """The share of reviews with the answer of an earlier pod, by the kind of the workload."""
    count = 200 if args.smoke else 3000
    pods, known = Counter(), Counter()
    with injectd_for_istio() as server:
        connection = Connection(server.address, unverified_context())
        metrics = Exposition(server.admin)
        before = 0
        for kind, body in Workloads().reviews(count):
            connection.ask(request_of(body, server.path))
            hits = metric(metrics.read(), "injectd_cache_hits_total", cache="templates")
            pods[kind] += 1
            known[kind] += hits - before
            before = hits
        connection.close()
        metrics.connection.close()
        rss = server.rss_mib()
    rows = [[kind, workloads, f"{pods[kind]:,}", f"{known[kind]:,}",
             f"{known[kind] / pods[kind]:.1%}"] for kind, workloads in KINDS.items()]
    share = known.total() / count
    rows.append(["all", sum(KINDS.values()), f"{count:,}", f"{known.total():,}", f"{share:.1%}"])
    report.table("Istio: pods of generated workloads, in random order", [
        "kind", "workloads", "pods", "with the answer of an earlier one", "share"], rows,
        [f"The first pods of each workload are among them. RSS after: {rss:.0f} MiB."])
    report.budget("Istio: share of reviews answered from memory", share, least=SHARE_BUDGET,
                  baseline=f"{sum(KINDS.values())} workloads, {count:,} pods; {configuration()}")


if __name__ == "__main__":
    raise SystemExit(part("istio", run))
