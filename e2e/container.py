"""A container of the Deployment as a kubelet runs it: its mounts, user, arguments and signals.

Read-only root with nothing but the binary and its libraries, a process namespace of its own, no
capabilities, no new privileges. Without the seccomp profile and memory limits.

Run as a program, this file becomes the container's first process.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from expect import DEADLINE_SECONDS, Failure, expect, poll

BINARY = "/usr/local/bin/injectd"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
LAST_CAPABILITY = Path("/proc/sys/kernel/cap_last_cap")


class Volume:
    """A ConfigMap or Secret on a node: files are links through `..data`, swapped atomically."""

    def __init__(self, folder):
        self.folder = folder
        self.current = None
        folder.mkdir(parents=True)

    def write(self, files):
        """Writes new content beside the old, then swaps (kubelet's `atomic_writer.go`)."""
        stamp = time.strftime("..%Y_%m_%d_%H_%M_%S.") + str(time.monotonic_ns())
        data = self.folder / stamp
        data.mkdir()
        for name, text in files.items():
            (data / name).write_text(text)
        link = self.folder / "..data_tmp"
        link.symlink_to(stamp)
        link.rename(self.folder / "..data")
        if not self.current:
            for name in files:
                (self.folder / name).symlink_to(f"..data/{name}")
        else:
            shutil.rmtree(self.current)
        self.current = data


class Container:
    """The container `proxy-injector` of a manifest."""

    def __init__(self, binary, manifest, folder, secret, uid=None, env=None):
        self.manifest, self.folder = manifest, folder
        self.process = self.pid = self.log = None
        self.volumes = {}
        for index, (path, files) in enumerate(manifest.mounts()):
            self.volumes[path] = Volume(folder / f"volume-{index}")
            self.volumes[path].write(secret if files is None else files)
        self.root = folder / "root"
        self.root.mkdir()
        spec = manifest.container
        security = spec["securityContext"]
        for key, value in {
            "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True, "runAsNonRoot": True,
        }.items():
            expect(f"{key} of the manifest", value, security.get(key))
        own = {variable["name"]: variable["value"] for variable in spec.get("env") or []}
        self.plan = {
            "root": str(self.root),
            "binds": {
                BINARY: str(binary),
                **{library: library for library in libraries(binary)},
                **{path: str(volume.folder) for path, volume in self.volumes.items()},
            },
            "uid": uid or security["runAsUser"],
            "gid": security.get("runAsGroup", 0),
            "argv": [BINARY, *spec["args"]],
            "env": {"PATH": PATH, "HOSTNAME": "linkerd-proxy-injector-0", **own, **(env or {})},
        }

    def start(self, log):
        """Starts it, with its output to `log`, a file or a pipe."""
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps(self.plan))
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--",
                   sys.executable, "-B", __file__, plan]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.pid = poll("the container's first process", self.first_process)
        expect("the container's exit code", None, self.process.poll())

    def first_process(self):
        if self.process.poll() is not None:
            return None
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        for pid in map(int, Path(children).read_text().split()):
            try:
                if os.readlink(f"/proc/{pid}/exe").endswith(BINARY):
                    return pid
            except OSError as error:
                raise Failure(str(error)) from None
        raise Failure("the binary has not started")

    def kill(self):
        if self.process and self.process.poll() is None:
            os.kill(self.pid or self.process.pid, signal.SIGKILL)
            self.process.wait()

    def terminate(self):
        os.kill(self.pid, signal.SIGTERM)

    def wait(self):
        try:
            return self.process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"still running {DEADLINE_SECONDS} s after SIGTERM") from None

    # --- from the outside ---

    def status(self, field):
        text = Path(f"/proc/{self.pid}/status").read_text()
        return re.search(rf"^{field}:\s*(.*)$", text, re.MULTILINE)[1]

    def rss_kib(self, field="VmRSS"):
        return int(self.status(field).split()[0])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def writable(self, uid):
        """The paths in the container that this user can write, and the number of those tried."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                found = try_to_write(self.pid, uid, self.plan["gid"])
                os.write(writer, json.dumps(found).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with open(reader, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        if not answer:
            raise Failure("the process that tries to write failed")
        return json.loads(answer)


def libraries(binary):
    run = subprocess.run(["ldd", binary], capture_output=True, text=True)
    return re.findall(r"(/\S+) \(0x", run.stdout)


def try_to_write(pid, uid, gid):
    """Tries to write each file and folder of the container, except the kernel's /proc."""
    os.chroot(f"/proc/{pid}/root")
    os.chdir("/")
    if uid:
        drop_privileges(uid, gid)
    written, tried = [], 0
    for folder, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if folder != "/" or name != "proc"]
        attempts = [(os.path.join(folder, ".try"), os.O_WRONLY | os.O_CREAT | os.O_EXCL)]
        attempts += [(os.path.join(folder, name), os.O_WRONLY | os.O_APPEND) for name in files]
        for path, flags in attempts:
            tried += 1
            try:
                os.close(os.open(path, flags))
            except OSError:
                continue
            written.append(path)
    return written, tried


# --- inside its namespaces ---


def drop_privileges(uid, gid):
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(int(LAST_CAPABILITY.read_text()) + 1):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            sys.exit(f"container: cannot drop capability {capability}")
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def mount(*args):
    subprocess.run(["mount", *map(str, args)], check=True)


def mount_root(root, binds):
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", root)
    (root / "proc").mkdir()
    for inside, outside in binds.items():
        target = root / inside.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if Path(outside).is_dir():
            target.mkdir(exist_ok=True)
        else:
            target.touch()
        mount("--bind", outside, target)
        mount("-o", "remount,bind,ro,nosuid,nodev", target)
    mount("-t", "proc", "-o", "ro,nosuid,nodev,noexec", "proc", root / "proc")
    mount("-o", "remount,ro,nosuid,nodev", root)


def main():
    plan = json.loads(Path(sys.argv[1]).read_text())
    mount_root(Path(plan["root"]), plan["binds"])
    os.chroot(plan["root"])
    os.chdir("/")
    drop_privileges(plan["uid"], plan["gid"])
    os.execve(BINARY, plan["argv"], plan["env"])


if __name__ == "__main__":
    main()
