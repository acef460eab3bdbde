"""What must not make reviews by Istio's injector slow: long lists, nodes, more reviews than it can
answer. Parts of `istio.py`.
"""

import json
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from connection import Connection, request_of, unverified_context
from results import median, micros, percentile
from reviews import TYPICAL, encode, typical
from servers import OVERLOAD, Failure, injectd_for_istio

# The digits in a review that each request replaces by others.
SERIAL = "0" * 10
# Variables of the container istio-proxy that a pod brings with it.
VARIABLES = [5000, 10_000, 20_000]
VARIABLES_BUDGET_MS = 50
# Such a pod alone takes more than a quarter of the memory limit that the chart has by default.
VARIABLES_MEMORY = "256Mi"
# Time of four times the variables, if it is linear; the rest is noise.
LINEAR_BUDGET = 6
NODES = 5000
NODES_BUDGET = 1.1
ANSWERED_BUDGET, RSS_BUDGET_MIB = 1, 256
BEYOND_CAPACITY, OVERLOAD_SECONDS, CAPACITY_SECONDS = 2.5, 20, 2
# The load, the key of its reviews, its connections while the capacity is measured and beyond it, and
# the flags of its client.
OVERLOADS = (("HTTP/1.1, one pod", "warm", 25, 1000, []),
             ("HTTP/2, no two pods alike", "cold", 1, 100, ["--http2"]))


# --- variables ---


def variables(args, report):
    """The time of a review of a pod with many variables, evaluated each time."""
    rows, times = [], {}
    with injectd_for_istio("--max-evaluation-memory", VARIABLES_MEMORY) as server:
        connection = Connection(server.address, unverified_context())
        for count in VARIABLES:
            cpu, whole = [], []
            for index in range(2 if args.smoke else 9):
                body = with_variables(count, index)
                before = server.cpu_seconds()
                took, answer = connection.answer(request_of(body, server.path))
                cpu.append(server.cpu_seconds() - before)
                whole.append(took)
                if b'"patch":"' not in answer:
                    raise Failure(f"the pod was not injected: {answer[:300]}")
            times[count] = median(cpu)
            rows.append([f"{count:,}", f"{len(body):,}", f"{len(answer):,}", micros(times[count]),
                         f"{times[count] / count * 1e6:.2f} µs", micros(percentile(whole, 0.5))])
        connection.close()
    report.table("Istio: variables of the container istio-proxy in a pod's manifest", [
        "variables", "bytes", "bytes of the answer", "CPU", "for each", "time of the client, p50"],
        rows, ["Each review has another annotation, so that the templates are evaluated."])
    few, *_, many = VARIABLES
    report.budget(f"Istio: CPU of a review with {many:,} variables of the sidecar (ms)",
                  times[many] * 1000, most=VARIABLES_BUDGET_MS, form="{:.1f}",
                  baseline=f"{times[few] * 1000:.1f} with {few:,}")
    report.budget("the same ÷ a quarter of the variables (linear: 4)", times[many] / times[few],
                  most=LINEAR_BUDGET, form="{:.1f}", baseline=f"{few:,} variables = 1")


def with_variables(count, index):
    review = typical()
    pod = review["request"]["object"]
    pod["metadata"]["annotations"]["sidecar.istio.io/proxyCPU"] = f"{1000 + index}m"
    env = [{"name": f"VARIABLE_{number:05}", "value": f"value-{number}"} for number in range(count)]
    pod["spec"]["containers"].append({"name": "istio-proxy", "image": "auto", "env": env})
    return encode(review)


# --- nodes ---


def nodes(args, report, cold, cpu_of):
    """CPU of a review in a cluster without nodes and with many, in turn."""
    rounds, seconds = (1, 1) if args.smoke else (5, 2)
    warm = cold._replace(review=TYPICAL, serial=None)
    with tempfile.TemporaryDirectory() as name:
        files = [objects(Path(name), count) for count in (0, NODES)]
        with (injectd_for_istio("--objects", str(files[0])) as without,
              injectd_for_istio("--objects", str(files[1])) as with_nodes):
            rows = []
            for what, asked in ("warm", warm), ("cold", cold):
                pairs = [tuple(cpu_of(server, asked, seconds).cpu
                               for server in (without, with_nodes)) for _ in range(rounds)]
                ratio = median([many / none for none, many in pairs])
                cells = [micros(median(times)) for times in zip(*pairs)]
                rows.append([what, *cells, f"{ratio:.2f}"])
                report.budget(f"Istio: CPU of a {what} review with {NODES:,} nodes ÷ without",
                              ratio, most=NODES_BUDGET, baseline="without nodes = 1")
    report.table("Istio: nodes of the cluster", [
        "reviews of 12 KB", "CPU without nodes", f"with {NODES:,}", "ratio"], rows,
        [f"Medians of {rounds} rounds. All kubelets support native sidecars."])


def objects(folder, count):
    """A file with a Namespace and this many Nodes."""
    namespace = typical()["request"]["namespace"]
    items = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}]
    items += [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{index}.example"},
               "status": {"nodeInfo": {"kubeletVersion": "v1.35.2"}}} for index in range(count)]
    path = folder / f"{count}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


# --- overload ---


def overload(args, report, asked):
    """Requests at 2.5 times the capacity, over HTTP/1.1 and HTTP/2, each on a server of its own."""
    seconds = 2 if args.smoke else OVERLOAD_SECONDS
    table, right, peak = [], [], []
    for name, key, few, many, flags in OVERLOADS:
        with injectd_for_istio() as server:
            alone = outcomes(server, asked[key], few, CAPACITY_SECONDS, flags)
            capacity = alone["right"] / CAPACITY_SECONDS
            if not capacity:
                raise Failure(f"{name}: no pod was injected: {dict(alone)}")
            rate = ["--rate", str(BEYOND_CAPACITY * capacity)]
            found = outcomes(server, asked[key], many, seconds, flags + rate)
            peak.append(server.rss_mib("VmHWM"))
        other = found["otherwise"] + found["reset"] + found["ended with the connection"]
        sent = found["right"] + found["refused"] + found["late"] + other
        if not sent:
            raise Failure(f"{name}: no request was sent: {dict(found)}")
        right.append((found["right"] + found["refused"]) / sent)
        table.append([name, f"{capacity:,.0f}", f"{found['right'] / seconds:,.0f}",
                      *(f"{count:,}" for count in (found["right"], found["refused"], found["late"],
                                                   other, found["offered"] - sent)),
                      f"{right[-1]:.2%}", f"{peak[-1]:.0f} MiB"])
    report.table(f"Istio: 2.5 times the capacity for {seconds} s", [
        "load", "capacity /s", "answered /s", "right", "503 with Retry-After",
        "given up after 10 s", "otherwise", "not sent, or not answered at the end", "right or 503",
        "RSS peak"], table,
        ["The capacity is that of the same client in a closed loop. A client gives up a request ten"
         " seconds after it fell due. It does not send a request without a free connection or"
         " stream."])
    report.budget("Istio: share right or 503 with Retry-After at 2.5 times the capacity",
                  min(right), least=ANSWERED_BUDGET, form="{:.4f}",
                  baseline="the worse of two loads")
    report.budget("Istio: RSS at 2.5 times the capacity (MiB)", max(peak), most=RSS_BUDGET_MIB,
                  form="{:.0f}", baseline="the larger of two loads")


def outcomes(server, asked, connections, seconds, flags):
    """How many requests ended in which way: `loadtest/overload.rs`."""
    command = [str(OVERLOAD), server.address, str(asked.review), *asked.flags(),
               "--connections", str(connections), "--seconds", str(seconds), *flags]
    run = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)
    if run.returncode:
        raise Failure(f"{OVERLOAD.name}: {run.stderr[-300:]}")
    lines = (line.rpartition(" ") for line in run.stdout.splitlines())
    return Counter({what: int(count) for what, _, count in lines})
