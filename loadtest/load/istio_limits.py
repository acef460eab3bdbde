"""What must not make reviews by Istio's injector slow: long lists, nodes, more reviews than it can
answer. Parts of `istio.py`.
"""

import json
import ssl
import tempfile
import time
from pathlib import Path

from servers import Failure, injectd_for_istio  # adds e2e to sys.path

import overload as over
from attackers import Place
from connection import Connection, request_of, unverified_context
from results import median, micros, percentile
from reviews import TYPICAL, encode, typical

# The digits in a review that each request replaces by others.
SERIAL = over.NO_SERIAL
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
# Connections of the load over HTTP/1.1, which sends one pod, and over HTTP/2, which sends pods of
# which no two are alike.
CONNECTIONS, CONNECTIONS_HTTP2 = 1000, 100


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
    seconds = 2 if args.smoke else over.SECONDS
    table, right, peak = [], [], []
    for name, load in ("HTTP/1.1, one pod", one_pod), ("HTTP/2, no two pods alike", all_different):
        with tempfile.TemporaryDirectory() as folder, injectd_for_istio() as server:
            row, share = load(place_of(server, Path(folder)), asked, seconds)
            peak.append(server.rss_mib("VmHWM"))
        right.append(share)
        table.append([name, *row, f"{share:.2%}", f"{peak[-1]:.0f} MiB"])
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


def one_pod(place, asked, seconds):
    (capacity,) = over.paced_capacity(place, asked["warm"])
    found = over.paced_overload(place, CONNECTIONS, None, capacity, asked["warm"], seconds)
    right, late = found["answered in 10 s"], found["given up"]
    # This client fails if the status of one answer is not 200; late ones waited for a connection.
    return ([*rates(found), f"{right:,}", 0, 0, 0, f"{late:,}"], 1.0)


def all_different(place, asked, seconds):
    body = asked["cold"].review.read_bytes(), asked["cold"].path
    (capacity,) = over.own_capacity(place, *body)
    until = time.monotonic() + seconds
    found = over.own_overload(place, CONNECTIONS_HTTP2, until, capacity, *body)
    right, refused, late = (found.get(key, 0) for key in (over.RIGHT, over.REFUSED, "given up"))
    unsent = found.get("given up unsent", 0) + found["not answered yet"]
    other = found["offered"] - right - refused - late - unsent
    sent = found["offered"] - unsent
    row = [*rates(found), *(f"{count:,}" for count in (right, refused, late, other, unsent))]
    return row, (right + refused) / sent


def rates(found):
    return [f"{found[f'{what} per second']:,}" for what in ("capacity", "answered")]


def place_of(server, folder):
    host, port = server.address.rsplit(":", 1)
    certificate = folder / "server.crt"
    certificate.write_text(ssl.get_server_certificate((host, int(port))))
    return Place(server.address, str(certificate))
