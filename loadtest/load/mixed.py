"""The k6 scripts, on the echo and on injectd in turn: a mix of sizes and verdicts, all checked."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import reviews
from results import micros, part
from servers import ROOT, Failure, echo, injectd

K6 = os.environ.get("K6", "k6")
MAX_SECONDS = 120
# The exit code of k6 if a threshold is crossed.
CROSSED = 99
RATES = [500, 1000, 2000]


def run(args, report):
    loads = [("closed", {})] + [("arrival", {"RATE": rate})
                                for rate in (RATES[:1] if args.smoke else RATES)]
    seconds, rows = 1 if args.smoke else 8, []
    with tempfile.TemporaryDirectory() as folder, echo(reviews.TYPICAL) as base, injectd() as ours:
        list(reviews.write(Path(folder)))
        for script, more in loads:
            for name, server in ("echo", base), ("injectd", ours):
                what = "-".join(["k6", script, *map(str, more.values()), name])
                env = {"TARGET": f"https://{server.address}", "BODIES": folder, "SECONDS": seconds,
                       "OUT": args.out / f"{what}.json", **more}
                if name == "echo":
                    env["ECHO"] = "1"
                k6(script, env)
                found = json.loads((args.out / f"{what}.json").read_text())
                rows.append(row(script, more, name, found))
                if found["checks"]["fails"]:
                    raise Failure(f"{what}: {found['checks']['fails']} checks failed")
    report.table("k6: a mix of sizes and verdicts, each answer checked", [
        "load", "server", "reviews", "/s", "dropped", "p50", "p99",
        "p50 of 3.4 KB", "12 KB", "68 KB", "checks passed"], rows,
        [f"{reviews.mix_text()}. Closed: 25 callers. Dropped: not started in time. The times are"
         " k6's own, and k6 takes most of the cores: only the difference between the servers has a"
         " meaning."])


def k6(script, env):
    flags = [flag for name, value in env.items() for flag in ("--env", f"{name}={value}")]
    command = [K6, "run", "--quiet", "--no-color", "--no-usage-report", "--address", "",
               *flags, str(ROOT / f"loadtest/k6/{script}.js")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=MAX_SECONDS, check=False)
    if run.returncode == CROSSED:
        print(f"k6: a threshold of {script}.js was crossed", flush=True)
    elif run.returncode:
        raise Failure(f"k6: {run.stderr[-500:]}")


def row(script, more, server, found):
    load = f"{more['RATE']:,} /s" if more else script
    times = found["milliseconds"]
    whole = times["http_req_duration"]
    by_size = [times.get(f"http_req_duration{{name:{name}}}", {}).get("med")
               for name in ("small", "typical", "large")]
    checks = found["checks"]
    return [load, server, f"{found['reviews']:,}", f"{found['per_second']:,.0f}", found["dropped"],
            *(micros(time / 1000) if time is not None else ""
              for time in (whole["med"], whole["p(99)"], *by_size)),
            f"{checks['passes']:,} of {checks['passes'] + checks['fails']:,}"]


if __name__ == "__main__":
    raise SystemExit(part("mixed", run))
