"""A reader for the manifests of Linkerd's proxy-injector, as its chart renders them.

It reads only the YAML of these manifests: block mappings and lists, plain and quoted scalars.
"""

import re

from expect import Failure

ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "e": "\x1b"}
PLAIN = {"": None, "null": None, "~": None, "true": True, "false": False, "{}": {}, "[]": []}
FOLD = r" *\n[ \n]*"


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
