"""The bodies of attacks: reviews that are expensive to answer, and the same as gRPC messages."""

import json

from reviews import TYPICAL, encode, typical, with_override  # loadtest/load

ADDITIONAL_ENV = "config.linkerd.io/proxy-additional-env"
OPAQUE_PORTS = "config.linkerd.io/opaque-ports"


def names_of_variables(count):
    """A value of proxy-additional-env: a list of that many variables with different names."""
    return json.dumps([{"name": f"{index:05}"} for index in range(count)], separators=(",", ":"))


def many_variables(count=60_000):
    """A review of 1.3 MB: injectd used to compare each variable with all before it."""
    return with_override(TYPICAL.read_bytes(), ADDITIONAL_ENV, names_of_variables(count))


def many_port_names(items=60_000, containers=10, ports=10_000):
    """A review of 2.4 MB: injectd used to search each name in every port of every container."""
    review = typical()
    pod = review["request"]["object"]
    main = pod["spec"]["containers"][0]
    numbers = [{"containerPort": number} for number in range(1, ports + 1)]
    pod["spec"]["containers"] = [
        {**main, "name": f"main-{index}", "ports": numbers} for index in range(containers)]
    return with_override(encode(review), OPAQUE_PORTS, "a," * items)


def many_commas(count=2_900_000):
    """A review of 2.9 MB: injectd used to answer each empty item with a warning of its own."""
    return with_override(TYPICAL.read_bytes(), OPAQUE_PORTS, "," * count)


def large_review():
    """A well-behaved review of 216 KB, which the separate threads for large reviews answer."""
    return many_port_names(items=1, containers=1, ports=9_000)


# --- messages of injectd.v1.Injector (proto/injectd/v1/injectd.proto) ---


def inject_request(pod, annotations=()):
    """An InjectRequest: a pod as JSON, and annotations of its namespace."""
    entries = b"".join(field(1, field(1, key) + field(2, value)) for key, value in annotations)
    message = (field(1, "attack") + field(2, "fulfilment") + field(3, "Pod") + field(4, pod))
    return message + field(5, entries) if entries else message


def many_namespace_annotations(count=20_000):
    """A message of 0.8 MB."""
    return inject_request(encode(typical()["request"]["object"]), [
        (f"example.com/note-{index:05}", "some text") for index in range(count)])


def many_variables_message(count=60_000):
    """A message of 1.3 MB."""
    pod = typical()["request"]["object"]
    pod["metadata"]["annotations"][ADDITIONAL_ENV] = names_of_variables(count)
    return inject_request(encode(pod))


def field(number, value):
    """A field of bytes or text in the wire format of protobuf."""
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])
