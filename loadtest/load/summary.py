"""The summary of a run: every budget with its figure, then the tables of the parts.

    python3 summary.py --out FOLDER --setup   writes setup.txt, before anything is measured
    python3 summary.py --out FOLDER           writes summary.md from the results of the parts
"""

import argparse
import hashlib
import json
import os
import platform
import re
import ssl
import subprocess
import time
from pathlib import Path

from results import markdown
from servers import INJECTD, ROOT

PARTS = {"rounds": "CPU and rate beside the echo", "curve": "Latency against rate",
         "mixed": "A mix of reviews (k6)", "burst": "Bursts of connections",
         "cold": "Cold paths", "soak": "A million reviews", "istio": "Istio",
         "ghz": "gRPC (ghz)"}
VERSIONS = {"h2load": ["h2load", "--version"],
            "k6": [os.environ.get("K6", "k6"), "version"], "rustc": ["rustc", "--version"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--setup", action="store_true")
    args = parser.parse_args()
    if args.setup:
        (args.out / "setup.txt").write_text(setup())
    else:
        (args.out / "summary.md").write_text(summary(args.out))


# --- the setup ---


def setup():
    model = re.search(r"^model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = int(re.search(r"^MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())[1])
    lines = {
        "begun": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "processor": f"{os.cpu_count()} cores, {model[1] if model else 'unknown'}",
        "memory": f"{memory / 1024 / 1024:.0f} GiB",
        "kernel": platform.release(),
        "load average before": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "commit": commit(),
        "injectd": f"{first_line([str(INJECTD), '--version'])}, sha256 {digest(INJECTD)}, "
                   f"{os.environ.get('BUILD', 'unknown build')}",
        **{name: first_line(command) for name, command in VERSIONS.items()},
        "python": f"{platform.python_version()}, {ssl.OPENSSL_VERSION}",
        "clients": "on the same cores as the servers; TLS 1.3 over the loopback",
    }
    width = max(map(len, lines)) + 1
    return "".join(f"{name + ':':{width}} {value}\n" for name, value in lines.items())


def commit():
    changed = first_line(["git", "-C", str(ROOT), "status", "--porcelain", "--", "src",
                          "Cargo.lock", "deploy/pgo.sh", "loadtest"])
    head = first_line(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"])
    return head + (" and uncommitted changes" if changed else "")


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def first_line(command):
    """The first line that a command prints."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "none"
    return run.stdout.partition("\n")[0]


# --- the results ---


def summary(folder):
    parts = {name: json.loads((folder / f"{name}.json").read_text())
             for name in PARTS if (folder / f"{name}.json").exists()}
    setup_text = output(folder, "setup.txt") + "\n" + output(folder, "parts.txt")
    lines = ["# Load test", "", "```", setup_text.rstrip(), "```", "",
             "Trust the ratios: times move with the machine, and clients run on its cores.",
             "",
             *budgets(parts)]
    for name, part in parts.items():
        lines += [f"## {PARTS[name]}", ""]
        for section in part["sections"]:
            lines += markdown(section)
    if (text := output(folder, "apiserver/summary.md")):
        text = re.sub("^#", "###", text.rstrip(), flags=re.MULTILINE)
        lines += ["## Through an API server", "", text, ""]
    missing = [title for name, title in PARTS.items() if not parts.get(name, {}).get("sections")]
    if missing:
        lines += [f"Not measured: {', '.join(missing)}.", ""]
    return "\n".join(lines)


def budgets(parts):
    lines = ["## Budgets", "", "| figure | result | baseline | budget | |", "|---|---|---|---|---|"]
    for part in parts.values():
        for each in part["budgets"]:
            lines.append(row(each["what"], each["found"], each["baseline"], each["budget"],
                             each["met"]))
    return lines + [""]


def row(what, found, baseline, budget, is_met):
    met = "met" if is_met else "**not met**"
    return f"| {what} | {found} | {baseline} | {budget} | {met} |"


def output(folder, name):
    path = folder / name
    return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    main()
