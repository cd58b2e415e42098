"""Starts a kettle of its own for an attack and watches what the attack costs it."""

import os
import pathlib
import resource
import shutil
import socket
import ssl
import subprocess
import tempfile
import time

CONFIG = """\
[server]
workers = 2
state_directory = "{folder}/state"
drain_timeout = "2s"
[admin]
socket = "{folder}/admin.sock"
[log]
access = "{access}"
format = "{format}"
[limits]
{limits}
[tls]
{tls}
[[listener]]
address = "127.0.0.1:{port}"
http2 = false
[[listener]]
address = "127.0.0.1:{plain}"
kind = "redirect"
redirect_port = {port}
[[site]]
names = ["localhost"]
default = true
self_signed = true
[[site.route]]
root = "{folder}/site"
listing = true
precompressed = ["gzip"]
"""


class Server:
    def __init__(self, kettle, limits="", tls="", nofile=None, access=None, log_format="json", output=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kettle-attack-"))
        self.site = self.folder / "site"
        (self.site / "folder").mkdir(parents=True)
        (self.site / "index.html").write_text("<h1>index</h1>")
        (self.site / "folder" / "a.txt").write_text("a file")
        (self.site / ".secret").write_text("CANARY dot file")
        (self.folder / "outside.txt").write_text("CANARY outside the root")
        (self.site / "1k").write_bytes(os.urandom(1024))
        (self.site / "1m").write_bytes(os.urandom(1 << 20))
        (self.site / "64m").write_bytes(os.urandom(1 << 26))
        self.port, self.plain = free_port(), free_port()
        config = CONFIG.format(
            folder=self.folder, port=self.port, plain=self.plain, limits=limits, tls=tls,
            access=access or self.folder / "access.log", format=log_format,
        )
        (self.folder / "kettle.toml").write_text(config)

        def limit():
            if nofile:
                resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))

        self.output = open(self.folder / "output", "wb")
        self.process = subprocess.Popen(
            [kettle, "run", "--config", str(self.folder / "kettle.toml")],
            stdout=output or self.output, stderr=self.output, preexec_fn=limit,
        )
        wait_until(lambda: can_connect(self.port) and self.serves(), 10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()
        shutil.rmtree(self.folder)

    def messages(self):
        return (self.folder / "output").read_text(errors="replace")

    def has_panicked(self):
        return self.process.poll() is not None or "panicked" in self.messages()

    def memory_kib(self, field="VmRSS"):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
        return 0

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_seconds(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = text.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cpu_percent(self, seconds):
        before = self.cpu_seconds()
        time.sleep(seconds)
        return (self.cpu_seconds() - before) / seconds * 100

    def connect(self, timeout=10, **options):
        return tls(self.port, timeout, **options)

    def serves(self, timeout=5):
        """Milliseconds for a whole new connection and a small file, or None."""
        began = time.monotonic()
        try:
            with self.connect(timeout) as client:
                client.sendall(get("/1k", "close"))
                return (time.monotonic() - began) * 1000 if status(receive_all(client)) == 200 else None
        except OSError:
            return None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def can_connect(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def wait_until(holds, seconds):
    """Whether `holds` came true, looked at ten times a second."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def context(version=None):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    if version:
        made.minimum_version = made.maximum_version = version
    return made


def tls(port, timeout=10, version=None):
    raw = socket.create_connection(("127.0.0.1", port), timeout)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        return context(version).wrap_socket(raw, server_hostname="localhost")
    except OSError:
        raw.close()
        raise


def get(target, connection="keep-alive", extra=""):
    head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n{extra}\r\n"
    return head.encode("latin-1")


def receive_all(client, bytes_max=1 << 27):
    """Everything until the end; a reset counts as one."""
    parts, total = [], 0
    while total < bytes_max:
        try:
            part = client.recv(1 << 16)
        except (ConnectionError, ssl.SSLError):
            break
        if not part:
            break
        parts.append(part)
        total += len(part)
    return b"".join(parts)


def status(response):
    """The first status, 0 if there is none."""
    words = response.split(b" ", 2)
    return int(words[1]) if len(words) > 2 and words[0].startswith(b"HTTP/1.") else 0


def statuses(response):
    found, rest = [], response
    while rest.startswith(b"HTTP/1."):
        head, _, rest = rest.partition(b"\r\n\r\n")
        found.append(status(head))
        length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        rest = rest[int(length[0].split(b":")[1]) if length else 0:]
    return found
