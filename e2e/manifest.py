"""The Deployment of Linkerd's proxy-injector, as its chart renders it: a reader for such manifests.

It reads only the YAML of these manifests: block mappings and lists, plain and quoted scalars.
"""

import re

from expect import Failure, expect

ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "e": "\x1b"}
PLAIN = {"": None, "null": None, "~": None, "true": True, "false": False, "{}": {}, "[]": []}
FOLD = r" *\n[ \n]*"


class Manifest:
    """The container `proxy-injector`, its volumes and its certificate, as the chart has them."""

    def __init__(self, path):
        self.name = path.stem
        self.objects = list(documents(path.read_text()))
        [deployment] = [body for body in self.objects if body["kind"] == "Deployment"]
        self.pod = deployment["spec"]["template"]["spec"]
        [self.container] = [container for container in self.pod["containers"]
                            if container["name"] == "proxy-injector"]
        self.ports = [port["containerPort"] for port in self.container["ports"]]

    def find(self, kind, name):
        for found in self.objects:
            if found["kind"] == kind and found["metadata"]["name"] == name:
                return found
        raise Failure(f"{self.name}: no {kind} {name}")

    def mounts(self):
        """The mount path of each volume, and its files; None for a Secret."""
        volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        for mount in self.container["volumeMounts"]:
            yield mount["mountPath"], self.files(volumes[mount["name"]])

    def files(self, volume):
        match volume:
            case {"configMap": {"name": name}}:
                return self.find("ConfigMap", name)["data"]
            case {"secret": {"secretName": name}}:
                expect("the keys of the Secret", ["tls.crt", "tls.key"],
                       list(self.find("Secret", name)["data"]))
                return None
            case {"projected": {"sources": sources}}:
                # The credentials for an API server, which is not there.
                paths = [item["path"] for source in sources for origin in source.values()
                         for item in origin.get("items", [origin])]
                return {path: f"no {path}\n" for path in paths}
        raise Failure(f"{self.name}: a volume of an unknown kind: {volume}")

    def service_name(self):
        """The name that the API server expects in the certificate."""
        [configuration] = [body for body in self.objects
                           if body["kind"] == "MutatingWebhookConfiguration"]
        service = configuration["webhooks"][0]["clientConfig"]["service"]
        return f"{service['name']}.{service['namespace']}.svc"


def documents(text):
    for document in re.split(r"^---\n", text, flags=re.MULTILINE):
        lines = [line for line in document.split("\n") if not line.startswith("#")]
        if any(lines):
            yield Block(lines).node(0)


class Block:
    """Reads lines one after the other."""

    def __init__(self, lines):
        self.lines, self.at = lines, 0

    def indent(self):
        """The indent of the next line; -1 at the end."""
        while self.at < len(self.lines) and not self.lines[self.at].strip():
            self.at += 1
        if self.at == len(self.lines):
            return -1
        return len(self.lines[self.at]) - len(self.lines[self.at].lstrip())

    def node(self, indent):
        is_list = self.lines[self.at][indent:].startswith("-")
        return self.list(indent) if is_list else self.mapping(indent)

    def list(self, indent):
        items = []
        while self.indent() == indent and self.lines[self.at][indent:].startswith("- "):
            text = self.lines[self.at][indent + 2 :]
            if re.match(r"[\w./-]+:( |$)", text):
                self.lines[self.at] = " " * (indent + 2) + text
                items.append(self.mapping(indent + 2))
            else:
                items.append(self.scalar(text, indent))
        return items

    def mapping(self, indent):
        found = {}
        while self.indent() == indent:
            line = self.lines[self.at][indent:]
            match = re.match(r"([\w./-]+):(?: (.*))?$", line)
            if not match:
                break
            key, text = match[1], match[2] or ""
            if text:
                found[key] = self.scalar(text, indent)
                continue
            self.at += 1
            deeper = self.indent()
            is_list = deeper == indent and self.lines[self.at][indent:].startswith("- ")
            found[key] = self.node(deeper) if deeper > indent or is_list else None
        return found

    def scalar(self, text, indent):
        """A scalar that begins with this text, and its continuation lines."""
        if text[0] in "|>&*!":
            raise Failure(f"unsupported YAML: {text}")
        self.at += 1
        quote = text[0] if text[0] in "\"'" else None
        pattern = {'"': r'"(?:[^"\\]|\\[\s\S])*"', "'": r"'(?:[^']|'')*'"}.get(quote)
        while pattern and not re.fullmatch(pattern, text.rstrip()):
            text += "\n" + self.lines[self.at]
            self.at += 1
        while not pattern and self.indent() > indent:
            text += "\n" + self.lines[self.at]
            self.at += 1
        text = text.strip()
        if quote == '"':
            return re.sub(rf"\\\n *|{FOLD}|\\x..|\\u....|\\.", unescaped, text[1:-1])
        if quote == "'":
            return re.sub(FOLD, folded, text[1:-1]).replace("''", "'")
        text = re.sub(FOLD, folded, text)
        return int(text) if re.fullmatch(r"-?\d+", text) else PLAIN.get(text, text)


def folded(match):
    return "\n" * (match[0].count("\n") - 1) or " "


def unescaped(match):
    text = match[0]
    if text.startswith("\\\n"):
        return ""
    if not text.startswith("\\"):
        return folded(match)
    return chr(int(text[2:], 16)) if text[1] in "xu" else ESCAPES.get(text[1], text[1])
