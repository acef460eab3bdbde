"""Measures a well-behaved client beside attackers.

    python3 e2e/attack.py [--smoke] [--only WORD] [--rounds N] [--json FILE]
    python3 e2e/attack.py --table BEFORE.json AFTER.json
    python3 e2e/attack.py --istio [--smoke] [--only WORD] [--table FILE [--before FILE]]

Each attack has a server of its own (`injectd serve --standalone`). A client sends the 12 KB review
over a kept connection, another over a new connection each second, and a third probes the admin
server; first alone, then beside the attackers. Attacks on connections also run against the echo
(loadtest/echo.rs): it has the same server code and no reviews, so its times beside the same
attackers are the machine's part. Prints a row per attack. Exit code 1 if one review of the
well-behaved client was refused, or a probe failed or took more than a second. $INJECTD, $ECHO and
$PACED name other binaries.
"""

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "loadtest/load"))

import attack_istio  # noqa: E402
import attack_table  # noqa: E402
import servers  # noqa: E402
from attack_istio_list import list_of_attacks  # noqa: E402
from attack_list import ATTACKS, SMOKE  # noqa: E402
from attack_measure import CUT_SECONDS, Measurement, Watch, wait_until_idle  # noqa: E402
from expect import Failure  # noqa: E402
from reviews import TYPICAL  # noqa: E402


class Times:
    """How long the parts of a measurement take, in seconds."""

    def __init__(self, is_smoke):
        self.quiet, self.attack, self.after = (1, 2, 1) if is_smoke else (2, 8, 12)
        # The echo is only a comparison.
        self.echo_quiet, self.echo_attack = 1, 4


def main():
    args = arguments()
    # An exception, so that the processes that were started are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if args.injectd:
        servers.INJECTD = args.injectd
    if args.istio:
        attacks = [attack for attack in list_of_attacks() if args.only in attack.name
                   and (attack.in_smoke or not args.smoke)]
        return attack_istio.run(attacks, args.table and args.table[0], args.before)
    if args.table:
        print(attack_table.merged(*(json.loads(path.read_text()) for path in args.table)))
        return 0
    chosen = [attack for attack in ATTACKS if args.only in f"{attack.name}, {attack.connections}"
              and (attack.key() in SMOKE or not args.smoke)]
    has_echo = servers.ECHO.exists() and not (args.smoke or args.no_echo)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), Times(args.smoke), has_echo)
        print(attack_table.HEADER, flush=True)
        for attack in chosen:
            for _ in range(args.rounds):
                bench.measure(attack)
        rows = bench.end()
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    failed = [row for row in rows if attack_table.has_failed(row)]
    for row in failed:
        print(f"FAILED {row['attack']}, {row['connections']}: {attack_table.why(row)}")
    print(f"{len(rows)} attacks, {len(failed)} failed")
    return int(bool(failed) or not rows)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="a few attacks, less than a minute")
    parser.add_argument("--only", default="", metavar="WORD",
                        help="attacks whose name and connections contain it, such as 'PING, 20'")
    parser.add_argument("--rounds", type=int, default=1,
                        help="measurements of each; the table has the median, or the worst value")
    parser.add_argument("--no-echo", action="store_true", help="do not compare with the echo")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--injectd", type=Path, metavar="BINARY", help="instead of $INJECTD")
    parser.add_argument("--istio", action="store_true",
                        help="attacks on evaluations of Istio's templates")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE",
                        help="print the table of two such files, before and after a change; with "
                        "--istio: write the table of this run into a file")
    parser.add_argument("--before", type=Path, metavar="FILE",
                        help="with --istio: a table of an earlier run, for the same file")
    args = parser.parse_args()
    if args.table and len(args.table) != (1 if args.istio else 2):
        parser.error("--table takes two files, and with --istio one")
    return args


class Bench:
    """Measures attacks one after the other; reads the memory after an attack during the next."""

    def __init__(self, folder, times, has_echo):
        self.folder, self.times, self.has_echo = folder, times, has_echo
        self.rounds, self.waiting = {}, []

    def measure(self, attack):
        server = servers.injectd(grpc_addr="127.0.0.1:0")
        watch = Watch(server)
        try:
            row = Measurement(attack, server, self.folder).run(self.times.quiet, self.times.attack)
        except BaseException:
            watch.end()
            server.process.kill()
            server.stop()
            raise
        ended = time.monotonic()
        if row["usual_after"] is not None:
            wait_until_idle(server, ended + CUT_SECONDS - self.times.attack)
        if attack.has_echo and self.has_echo:
            with servers.echo(TYPICAL) as echo:
                measurement = Measurement(attack, echo, self.folder)
                row["echo"] = measurement.run(self.times.echo_quiet, self.times.echo_attack)
        rest = threading.Thread(target=self.look_back, args=(attack, row, server, watch, ended))
        rest.start()
        self.waiting.append(rest)
        if row["usual_after"] is None:
            rest.join()

    def look_back(self, attack, row, server, watch, ended):
        """Reads the memory some time after the attack, and stops the server."""
        time.sleep(max(0, ended + self.times.after - time.monotonic()))
        row["rss_first"], row["rss_high"], row["rss_after"] = watch.end()
        if server.process.poll() is None and row["usual_after"] is None:
            server.process.kill()
        server.stop()
        self.rounds.setdefault(attack.key(), []).append(row)
        print(attack_table.line(row), flush=True)

    def end(self):
        for rest in self.waiting:
            rest.join()
        return [attack_table.middle(rows) for rows in self.rounds.values()]


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except Failure as failure:
        raise SystemExit(f"attack: {failure}") from None
