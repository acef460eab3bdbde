"""Asks injectd's gRPC server for the sidecar of one pod.

    pip install -r requirements.txt
    python inject.py --addr localhost:8444 --ca ca.crt ../pod.json

It generates the code of the protocol from proto/ at each start, in a temporary folder.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import grpc
from grpc_tools import protoc

PROTO = Path(__file__).parents[3] / "proto/injectd/v1"
FILE = "injectd.proto"


def generated():
    """The modules of messages and of the service."""
    with tempfile.TemporaryDirectory() as folder:
        standard = Path(protoc.__file__).parent / "_proto"
        code = protoc.main(["protoc", f"-I{PROTO}", f"-I{standard}", f"--python_out={folder}",
                            f"--grpc_python_out={folder}", FILE])
        if code:
            raise SystemExit(code)
        sys.path.insert(0, folder)
        import injectd_pb2
        import injectd_pb2_grpc
        sys.path.remove(folder)
    return injectd_pb2, injectd_pb2_grpc


def channel_of(args):
    def read(file):
        return file and Path(file).read_bytes()

    if args.addr.startswith("unix:"):
        # Else the path of the socket is the authority, which is not one.
        return grpc.insecure_channel(args.addr, [("grpc.default_authority", "localhost")])
    credentials = grpc.ssl_channel_credentials(read(args.ca), read(args.key), read(args.cert))
    return grpc.secure_channel(args.addr, credentials)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--addr", default="localhost:8444", help="address of the gRPC server: HOST:PORT or unix:PATH")
    parser.add_argument("--ca", help="CA of the server's certificate, PEM")
    parser.add_argument("--cert", help="client certificate, PEM, if the server requires one")
    parser.add_argument("--key", help="its private key, PEM")
    parser.add_argument("--namespace", default="default", help="namespace of the pod")
    parser.add_argument("--patch", type=Path, help="file to write the patch to")
    parser.add_argument("--timeout", type=float, default=10, help="seconds to wait for the answer")
    parser.add_argument("pod", type=Path, help="the pod as JSON")
    args = parser.parse_args()

    messages, services = generated()
    request = messages.InjectRequest(namespace=args.namespace, kind="Pod",
                                     object=args.pod.read_bytes())
    with channel_of(args) as channel:
        try:
            response = services.InjectorStub(channel).Inject(request, timeout=args.timeout)
        except grpc.RpcError as error:
            return f"{error.code().name}: {error.details()}"
    operations = json.loads(response.patch or b"[]")
    print(f"{messages.Verdict.Name(response.verdict)}, {len(operations)} operations")
    if args.patch:
        args.patch.write_bytes(response.patch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
