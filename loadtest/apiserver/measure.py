"""Measures what a sidecar costs in a real API server, way by way. Started by run.sh."""

import argparse
import csv
import json
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "load"))

from cluster import Api  # noqa: E402
from expect import Failure  # noqa: E402
from posting import Creators  # noqa: E402
from table import Row, summary  # noqa: E402
from ways import ALL, COMPARED, Site  # noqa: E402

TOTAL_SECONDS = 420
MAX_WARM_UP_SECONDS = 1


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, required=True)
    arguments.add_argument("--seconds", type=float, required=True)
    arguments.add_argument("--creators", required=True)
    arguments.add_argument("--max-seconds", type=float, required=True)
    arguments.add_argument("--load", required=True)
    arguments.add_argument("--out")
    options = arguments.parse_args()
    stop_in_time(TOTAL_SECONDS)
    begin = time.monotonic()
    kubeconfig = Path(os.environ["KUBECONFIG"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        api = Api(kubeconfig, folder)
        reviewed = json.loads((HERE.parent / "review-12k.json").read_text())
        site = Site(api, folder, kubeconfig.parent, reviewed)
        try:
            site.start()
            rows, sizes = measure(site, folder, options, begin + options.max_seconds)
        finally:
            for number in signal.SIGINT, signal.SIGTERM, signal.SIGALRM:
                signal.signal(number, signal.SIG_IGN)
            site.clean_up()
    text = summary(rows, sizes, [machine(options.load), f"Runs of {options.seconds:g} s."])
    print(text)
    if options.out:
        write(Path(options.out), rows, text)


def measure(site, folder, options, end):
    """Measures as many rounds as fit before `end`."""
    sizes = site.expect_same_pods()
    levels = [int(level) for level in options.creators.split(",")]
    creators = Creators(site.api, folder / "client.pem", max(levels))
    runner = Runner(site, creators, {**site.pids, "client": os.getpid()})
    for way in ALL:
        runner.run(way, max(levels), min(options.seconds, MAX_WARM_UP_SECONDS))
    rows, longest = [], 0
    for number in range(options.rounds):
        begin = time.monotonic()
        if begin + longest > end:
            print(f"only {number} of {options.rounds} rounds fit", file=sys.stderr)
            break
        for level in levels:
            ways = ALL if level == levels[len(levels) // 2] else COMPARED
            first = number % len(ways)
            rows += [Row(number + 1, level, way.namespace,
                         *runner.run(way, level, options.seconds))
                     for way in ways[first:] + ways[:first]]
        longest = max(longest, time.monotonic() - begin)
        print(f"round {number + 1}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    creators.close()
    return rows, sizes


def stop_in_time(seconds):
    late = f"FAILED: it took longer than {seconds} s"
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(late))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal.alarm(seconds)


class Runner:
    """Runs one way for some seconds, then deletes its pods."""

    def __init__(self, site, creators, pids):
        self.site, self.creators, self.pids = site, creators, pids
        self.requests = {way.namespace: site.request(way) for way in ALL}

    def run(self, way, count, seconds):
        opened = self.site.connections()
        run = self.creators.run(self.requests[way.namespace], count, seconds, self.pids)
        opened = self.site.connections() - opened
        self.site.clear(way)
        return run.pods, run.seconds, *run.cpu_seconds.values(), opened


def machine(load):
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    model = found[1] if found else "unknown"
    return (f"Machine: {os.cpu_count()} cores, {model}, shared by all processes; "
            f"load average {load} before.")


def write(folder, rows, text):
    with (folder / "raw.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(Row._fields)
        lines.writerows(rows)
    (folder / "summary.md").write_text(text + "\n")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"FAILED: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
