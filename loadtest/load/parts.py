"""Where the time of a review goes, beside the echo's: perf's samples by part of the program.

    python3 loadtest/load/parts.py [SECONDS]

Both answer the 12 KB review in turn under h2load. The parts add up to the CPU of a request, which
is measured without perf. Needs h2load, and perf with access to the kernel.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from h2load import h2load
from servers import ROOT, Failure, echo, injectd

REVIEW = ROOT / "loadtest" / "review-12k.json"
CONNECTIONS = 16
SAMPLES_A_SECOND = 1999
SAMPLE = re.compile(r"^\s+([\d.]+)%\s+.*?\s\[(.)\]\s+(.*?)\s*$", re.MULTILINE)
# The first pattern that matches a symbol names its part.
PARTS = [
    ("TLS", r"aes|gcm|ghash|AEAD|rustls|EVP|aws_lc|CRYPTO_"),
    ("decode", r"injectd::(json::(scan|reader)|review::(decode|Review|Group)|pod::)|memchr::|utf8"),
    ("decide, render, encode",
     r"injectd::(linkerd|patch|injector|review|outcome|namespaces|json)|base64"),
    ("log", r"tracing|injectd::(log|observer)|core::fmt"),
    ("metrics", r"^<?metrics|injectd::metrics"),
    ("timers and clock", r"clock_gettime|\btime::|timeout|Timespec"),
    ("allocator", r"malloc|cfree|_int_free|alloc::alloc|rust_(alloc|dealloc|realloc)|tcache|unlink_chunk"),
    ("copies", r"^_*mem(cpy|move|set|cmp)"),
    ("HTTP", r"hyper|http|bytes::"),
    ("tasks", r"tokio"),
    ("the server", r"injectd::"),
]
KERNEL, OTHER = "kernel", "the rest"


def cpu_by_part(server, seconds):
    """CPU of a request by part, in µs."""
    h2load(server, REVIEW, CONNECTIONS, "-n", 3000)
    cpu = h2load(server, REVIEW, CONNECTIONS, "-D", seconds).cpu * 1e6
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(SAMPLES_A_SECOND), "-o",
                  str(data), "-p", str(server.pid), "--", "sleep", str(seconds + 1)]
        with subprocess.Popen(record, stderr=subprocess.PIPE) as recording:
            h2load(server, REVIEW, CONNECTIONS, "-D", seconds + 1)
            _, problem = recording.communicate(timeout=seconds + 60)
        report = subprocess.run(
            ["perf", "report", "-i", str(data), "--no-children", "--stdio", "--percent-limit", "0"],
            capture_output=True, text=True, check=False)
    if recording.returncode or report.returncode:
        raise Failure(f"perf: {problem.decode()[-300:]}{report.stderr[-300:]}")
    shares = {}
    for percent, kind, symbol in SAMPLE.findall(report.stdout):
        part = KERNEL if kind == "k" else part_of(symbol)
        shares[part] = shares.get(part, 0) + float(percent)
    if not shares.get(KERNEL):
        raise Failure("perf has no samples of the kernel: set sysctl kernel.perf_event_paranoid=1,"
                      " or run as root")
    total = sum(shares.values())
    return cpu, {part: cpu * share / total for part, share in shares.items()}


def part_of(symbol):
    return next((part for part, like in PARTS if re.search(like, symbol)), OTHER)


def main():
    for tool, package in ("perf", "linux-perf"), ("h2load", "nghttp2-client"):
        if not shutil.which(tool):
            raise Failure(f"{tool} is missing: apt-get install {package}")
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with echo(REVIEW) as server:
        of_echo, echo_parts = cpu_by_part(server, seconds)
    with injectd() as server:
        ours, parts = cpu_by_part(server, seconds)
    print(f"{'CPU µs of a request':<24} {'injectd':>8} {'echo':>8} {'more':>8}")
    for part in [KERNEL, *(name for name, _ in PARTS), OTHER]:
        mine, others = parts.get(part, 0), echo_parts.get(part, 0)
        print(f"{part:<24} {mine:8.1f} {others:8.1f} {mine - others:8.1f}")
    print(f"{'all':<24} {ours:8.1f} {of_echo:8.1f} {ours - of_echo:8.1f}   ratio {ours / of_echo:.2f}")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        raise SystemExit(f"parts: {failure}") from None
