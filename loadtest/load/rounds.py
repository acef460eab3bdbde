"""The rounds of `loadtest/run.sh`: CPU per review and rate, beside the echo's."""

import re
import subprocess

from results import median, part
from servers import ROOT, Failure

CPU_BUDGET, CPU_AIM, RATE_BUDGET = 1.6, 1.3, 0.65
# The lowest recorded CPU of Linkerd's own injector ÷ echo.
LINKERD_ECHOES = 730
LINKERD_BUDGET = 1 / 450
ROUND = re.compile(r"^round \d+: echo (\d+) requests/s, ([\d.]+) µs; injectd (\d+) requests/s, "
                   r"([\d.]+) µs", re.MULTILINE)


def run(args, report):
    command = [str(ROOT / "loadtest/run.sh"), *(["--smoke", "--rounds", "1"] if args.smoke else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as process:
        try:
            text = process.stdout.read()
        except BaseException:
            process.terminate()
            raise
    (args.out / "rounds.txt").write_text(text)
    if process.returncode:
        raise Failure(f"run.sh: {text[-300:]}")
    rounds = [tuple(map(float, found)) for found in ROUND.findall(text)]
    table(report, rounds)
    cpu = median([ours / echo for _, echo, _, ours in rounds])
    rate = median([ours / echo for echo, _, ours, _ in rounds])
    report.facts["cpu_ratio"], report.facts["rate_ratio"] = cpu, rate
    of_echo = "echo = 1"
    report.budget("CPU per injected 12 KB review ÷ echo", cpu, most=CPU_BUDGET, baseline=of_echo)
    report.budget("the same, aim", cpu, most=CPU_AIM, baseline=of_echo)
    report.budget("CPU per review ÷ that of Linkerd's injector, as recorded", cpu / LINKERD_ECHOES,
                  most=LINKERD_BUDGET, form="{:.5f}", baseline=f"{LINKERD_ECHOES} × echo, at best")
    report.budget("rate ÷ echo, 16 connections", rate, least=RATE_BUDGET, baseline=of_echo)


def table(report, rounds):
    rows = [[index, f"{echo_rate:,.0f}", f"{echo_cpu:.1f}", f"{rate:,.0f}", f"{cpu:.1f}",
             f"{cpu / echo_cpu:.2f}", f"{rate / echo_rate:.2f}"]
            for index, (echo_rate, echo_cpu, rate, cpu) in enumerate(rounds, 1)]
    report.table("Closed loop, 16 connections, the 12 KB review", [
        "round", "echo requests/s", "echo CPU µs", "injectd reviews/s", "injectd CPU µs",
        "CPU ÷ echo", "rate ÷ echo"], rows)


if __name__ == "__main__":
    raise SystemExit(part("rounds", run))
