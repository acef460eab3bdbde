"""End-to-end scenarios of the gRPC server. Started by grpc.sh, inside kube-lab.

Not named grpc.py, because that is the name of the clients' package. Each scenario prints a line
`ok …`, or `FAILED …` with the expected value and the value that was found.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from cluster import Api
from grpc_abuse import Abuse, Patience
from grpc_local import Ends, Loopback, Refusals, UnixSocket
from grpc_mtls import MutualTls, OnWebhook
from grpc_tokens import Tokens
from steps import Steps, stop_in_time

TOTAL_SECONDS = 300
PARTS = {
    "loopback": Loopback, "unix": UnixSocket, "refusals": Refusals, "mtls": MutualTls,
    "webhook": OnWebhook, "ends": Ends, "abuse": Abuse, "patience": Patience, "tokens": Tokens,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}")
    args = parser.parse_args()
    stop_in_time(TOTAL_SECONDS)
    steps = Steps()
    with tempfile.TemporaryDirectory() as folder:
        for name in args.parts or PARTS:
            run(steps, PARTS[name], Path(folder) / name)
    return steps.end()


def run(steps, part, folder):
    """Runs a part on a process of its own; parts do not depend on each other."""
    folder.mkdir()
    made = part(folder, Api(os.environ["KUBECONFIG"], folder)) if part is Tokens else part(folder)
    failed = steps.failed
    try:
        for name, step in made.steps().items():
            steps.run(name, step)
    finally:
        made.clean_up()
    served = getattr(made, "served", None)
    if steps.failed > failed and served and served.log.exists():
        lines = [line for line in served.log.read_text().splitlines() if "msg=reviewed" not in line]
        print("the end of injectd's log:", *(line[:300] for line in lines[-5:]), sep="\n  ")


if __name__ == "__main__":
    sys.exit(main())
