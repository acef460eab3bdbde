#!/usr/bin/env python3
"""Checks that every metric of the dashboard and of the alerts exists, with the labels that they select by.

usage: check-metrics.py [--without=PREFIX] FILE…

Each FILE is the text of a /metrics page of a running injectd. A metric exists if any page has a sample of
it. Metrics with the PREFIX are those of a feature that is off.
"""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
NAME = r"\b(?:injectd|proxy_inject|sidecar_injection|process)_[a-z0-9_]+\b"
# A metric, and its label matchers.
SELECTOR = re.compile(rf"({NAME})(?:{{([^}}]*)}})?")
MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"')
# Suffixes of the series of a histogram, which have the label `le`.
SERIES = re.compile(r"_(?:bucket|sum|count)$")
# Labels that Prometheus adds.
ADDED = {"instance", "job", "namespace", "pod"}


def expressions(node):
    """All values of the keys `expr` and `query` in a tree."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "query") and isinstance(value, str):
                yield value
            else:
                yield from expressions(value)
    elif isinstance(node, list):
        for item in node:
            yield from expressions(item)


def selectors(text):
    """The metrics in a text, each with a set of labels."""
    for name, matchers in SELECTOR.findall(text):
        yield SERIES.sub("", name), set(MATCHER.findall(matchers))


def named():
    """The metrics that dashboard and alerts name, each with the labels that they select by."""
    dashboard = json.loads((HERE / "grafana-dashboard.json").read_text())
    texts = list(expressions(dashboard))
    texts.append((HERE / "prometheus-rules.yaml").read_text())
    names = {}
    for text in texts:
        for name, labels in selectors(text):
            names.setdefault(name, set()).update(labels)
    return names


def served(paths):
    """The metrics of the pages, each with its labels."""
    metrics = {}
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            if not line.startswith("#"):
                for name, labels in selectors(line):
                    metrics.setdefault(name, set()).update(labels)
    return metrics


def main():
    arguments = sys.argv[1:]
    option = "--without="
    without = tuple(argument.removeprefix(option) for argument in arguments if argument.startswith(option))
    files = [argument for argument in arguments if not argument.startswith(option)]
    if not files:
        sys.exit("usage: check-metrics.py [--without=PREFIX] FILE…")
    names = {name: labels for name, labels in named().items() if not name.startswith(without)}
    metrics = served(files)
    missing = [name for name in names if name not in metrics]
    for name in names.keys() & metrics.keys():
        labels = names[name] - metrics[name] - ADDED
        missing.extend(f"{name}{{{label}}}" for label in labels)
    if missing:
        sys.exit("no such metric: " + ", ".join(sorted(missing)))
    print(f"{len(names)} metrics of dashboard and alerts exist")


main()
