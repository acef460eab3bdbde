#!/usr/bin/env python3
"""Checks that every metric of the dashboard and of the alerts exists.

usage: check-metrics.py FILE…

Each FILE is the text of a /metrics page of a running injectd. A family counts as there if any page has
a sample or a TYPE line of it.
"""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
NAME = re.compile(r"\b(?:injectd|proxy_inject|sidecar_injection|process)_[a-z0-9_]+\b")
# Suffixes of the series of a histogram.
SERIES = re.compile(r"_(?:bucket|sum|count)$")
# Families that have no series until something happens.
LATER = {
    "injectd_audit_is_leader": "only with --audit",
    "injectd_audit_last_success_timestamp_seconds": "only with --audit",
    "injectd_audit_pods": "only with --audit",
    "injectd_audits_total": "only with --audit",
    "injectd_restart_stuck": "only with --audit",
    "injectd_restarts_failed_total": "only with --audit",
    "injectd_restarts_in_flight": "only with --audit",
    "injectd_restarts_total": "only with --audit",
    "injectd_restarts_waiting": "only with --audit",
    "injectd_ca_bundle_repair_seconds": "after the first repair",
    "injectd_release_unknown": "only while the release is unknown",
}


def expressions(node):
    """All values of the key `expr` in a tree."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "query") and isinstance(value, str):
                yield value
            else:
                yield from expressions(value)
    elif isinstance(node, list):
        for item in node:
            yield from expressions(item)


def named():
    """The metrics that dashboard and alerts name."""
    dashboard = json.loads((HERE / "grafana-dashboard.json").read_text())
    texts = list(expressions(dashboard))
    for line in (HERE / "prometheus-rules.yaml").read_text().splitlines():
        # Texts for people name metrics of the API server, too.
        if not line.lstrip().startswith(("#", "summary:", "description:", "runbook:")):
            texts.append(line)
    return {SERIES.sub("", name) for text in texts for name in NAME.findall(text)}


def served(paths):
    """The families of the pages."""
    families = set()
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            words = line.split()
            if line.startswith("# TYPE "):
                families.add(words[2])
            elif words and not line.startswith("#"):
                families.add(SERIES.sub("", re.split(r"[{ ]", line)[0]))
    return families


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: check-metrics.py FILE…")
    names, families = named(), served(sys.argv[1:])
    missing = sorted(names - families - LATER.keys())
    if missing:
        sys.exit("no such metric: " + ", ".join(missing))
    later = sorted(names & LATER.keys() - families)
    note = f"; {len(later)} appear later" if later else ""
    print(f"{len(names)} metrics of dashboard and alerts are there{note}")


main()
