"""Makes load from the object of a review: for ghz one request, or the requests of a stream; for
h2load the body of a unary call.

    python3 data.py REVIEW.json N > data.json
    python3 data.py REVIEW.json body > data

The requests are complete, each with its own uid, so that ghz encodes them once and not per call.
"""

import base64
import json
import sys
from pathlib import Path


def main():
    path = Path(sys.argv[1])
    if sys.argv[2] == "body":
        sys.stdout.buffer.write(message(path))
        return
    count = int(sys.argv[2])
    # ghz reads a list as the requests of a stream.
    json.dump(requests(path, count), sys.stdout)


def requests(path, count):
    """One request, or the requests of a stream."""
    request, text = request_of(path)
    template = (Path(__file__).parent / "request.json.in").read_text()
    filled = template.replace("@OBJECT@", base64.b64encode(text).decode())
    filled = filled.replace("@NAMESPACE@", request["namespace"])
    each = [json.loads(filled.replace("@UID@", str(index))) for index in range(1, count + 1)]
    return each[0] if count == 1 else [{"request": one} for one in each]


def request_of(path):
    """The request of a review, and its object as JSON."""
    request = json.loads(path.read_text())["request"]
    return request, json.dumps(request["object"], separators=(",", ":")).encode()


def message(path):
    """A message of gRPC: not compressed, its length, an InjectRequest encoded by hand."""
    request, text = request_of(path)
    namespace = request["namespace"].encode()
    encoded = b"".join(
        bytes([number << 3 | 2]) + varint(len(value)) + value
        for number, value in ((1, b"1"), (2, namespace), (3, b"Pod"), (4, text)))
    return b"\0" + len(encoded).to_bytes(4, "big") + encoded


def varint(number):
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


if __name__ == "__main__":
    main()
