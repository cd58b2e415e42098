"""What all applications need: a folder, processes that end, a front end before them, and a client."""

import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading

import httpx

HERE = pathlib.Path(__file__).resolve().parent
SRV = pathlib.Path("/srv")
SITES = pathlib.Path("/etc/nginx/sites-enabled")
AUTHORITY = SRV / "tls/authority.pem"
LIMIT = 120


class Fault(Exception):
    """What is not as it should be."""


def check(condition, what):
    if not condition:
        raise Fault(what)


def run(*words, limit=LIMIT, **options):
    """Runs a program to its end, and returns what it printed."""
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=limit, stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        raise Fault(f"{' '.join(words[:3])} ended with {done.returncode}: {(done.stderr + done.stdout).strip()[-2000:]}")
    return done.stdout


class Process:
    """A program that serves. It is there once a line of its output says so, if there is to be such a line."""

    def __init__(self, name, words, ready, limit=LIMIT, **options):
        self.name, self.lines = name, []
        self.is_ready = threading.Event()
        self.child = subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", **options)
        self.reader = threading.Thread(target=self.read, args=(ready and re.compile(ready),), daemon=True)
        self.reader.start()
        if ready and not (self.is_ready.wait(limit) and self.is_there):
            self.end()
            raise Fault(f"{name} did not start: {' | '.join(self.lines[-12:])}")

    def read(self, ready):
        self.is_there = False
        for line in self.child.stdout:
            self.lines.append(line.rstrip())
            if ready and ready.search(line):
                self.is_there = True
                self.is_ready.set()
        self.is_ready.set()

    def end(self):
        self.child.terminate()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.reader.join(10)
        with open(SRV / "log" / f"{self.name}.log", "w") as log:
            log.writelines(f"{line}\n" for line in self.lines)


class Stage:
    """A fresh folder with one application in it, behind nginx or kettle."""

    def __init__(self, parts, kettle):
        self.parts, self.kettle = parts, kettle
        self.processes = []

    def prepare(self, site, names, values):
        """Empties all folders, makes a certificate for these names, and puts the site's file where Debian has them."""
        for folder in SRV, SITES, pathlib.Path("/var/log/nginx"):
            for entry in folder.iterdir():
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        for folder in "tls", "log":
            (SRV / folder).mkdir()
        SRV.chmod(0o755)
        for name in "access.log", "error.log":
            # Debian makes them so.
            log = pathlib.Path("/var/log/nginx") / name
            log.touch(0o640)
            shutil.chown(log, "www-data", "adm")
        certificate(SRV / "tls", names)
        text = (HERE / "nginx" / f"{site}.conf").read_text()
        for word, value in values.items():
            text = text.replace(word, str(value))
        (SITES / site).write_text(text)

    def folder(self, name, user=None):
        """A folder of the application."""
        path = SRV / name
        path.mkdir(parents=True)
        if user:
            shutil.chown(path, user, user)
        return path

    def start(self, name, words, ready, **options):
        """Starts a program, and waits for the line that says that it serves."""
        process = Process(name, words, ready, **options)
        self.processes.append(process)
        return process

    def python(self):
        """The environment of programs in Python."""
        return os.environ | {"PYTHONPATH": str(self.parts / "python"), "HOME": str(SRV)}

    def nginx(self):
        """Starts nginx with the file."""
        run("nginx", "-t")
        self.start("nginx", ["nginx", "-g", "daemon off; error_log stderr notice;"], "start worker process ")

    def imported(self):
        """Imports the file, starts kettle with it, and says what became of it."""
        summary = subprocess.run(
            [self.kettle, "import", "nginx", "/etc/nginx/nginx.conf", "--summary"], capture_output=True, text=True, timeout=LIMIT)
        (SRV / "log/summary").write_text(summary.stdout + summary.stderr)
        config = SRV / "kettle.toml"
        config.write_text(run(self.kettle, "import", "nginx", "/etc/nginx/nginx.conf", "--check"))
        run(self.kettle, "check", config)
        ready = pathlib.Path("/run/notify")
        ready.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
            notified.bind(str(ready))
            # As systemd's own is: the user that serves says it.
            ready.chmod(0o666)
            notified.settimeout(LIMIT)
            self.start("kettle", [self.kettle, "run", config], None, env=os.environ | {"NOTIFY_SOCKET": str(ready)})
            check(b"READY=1" in notified.recv(4096), "kettle did not start")
        return Summary(summary.stdout)

    def end(self):
        """Ends all, the last first."""
        for process in reversed(self.processes):
            process.end()
        self.processes.clear()


class Summary:
    """What `kettle import --summary` says."""

    def __init__(self, text):
        places = re.search(r"(\d+) of (\d+) places carried over", text)
        self.carried, self.places = places.groups() if places else ("0", "0")
        self.differs = (re.search(r"^(\d+) directives? differs?", text, re.M) or [None, "0"])[1]
        lost, _, _ = text.partition("What else is not as it was")
        # What nginx refuses there is not lost.
        own = ("`deny all`", "`return 4", "`internal`")
        lines = [line.strip() for line in lost.splitlines() if line.startswith("  ")]
        self.lost = [line.split(": ", 1)[-1] for line in lines if not any(word in line for word in own)]


def certificate(folder, names):
    """Makes an authority, and a certificate of these names by it."""
    def openssl(*words):
        run("openssl", *words, cwd=folder)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "authority.key", "-out", "authority.pem", "-days", "2", "-subj", "/CN=Example authority")
    names = ",".join(f"DNS:{name}" for name in names)
    openssl("req", "-x509", *key, "-keyout", "site.key", "-out", "site.pem", "-days", "2", "-subj", "/CN=site",
            "-CA", "authority.pem", "-CAkey", "authority.key", "-addext", f"subjectAltName={names}",
            "-addext", "basicConstraints=critical,CA:FALSE")


def client(base, http2=True, **options):
    """A browser of sorts: it keeps cookies and trusts the authority."""
    context = ssl.create_default_context(cafile=AUTHORITY)
    # A server that does not offer HTTP/2 is asked by HTTP/1.1.
    return httpx.Client(base_url=base, http2=http2, http1=True, verify=context, timeout=LIMIT, follow_redirects=True, **options)


def field(page, name):
    """The value of a form's hidden field."""
    found = re.search(rf'name="{re.escape(name)}"[^>]*value="([^"]*)"', page) or re.search(rf'value="([^"]*)"[^>]*name="{re.escape(name)}"', page)
    check(found, f"the page has no field {name}")
    return found[1]


def pieces(content):
    """A body of unknown length."""
    return (content[start:start + 65536] for start in range(0, len(content), 65536))


def ranged(visitor, url, content, has_suffixes=True, **options):
    """Fetches a file in full and by ranges, and compares it."""
    whole = visitor.get(url, **options)
    check(whole.status_code == 200 and whole.content == content,
          f"GET {url}: {whole.status_code}, {len(whole.content)} bytes instead of {len(content)}")
    half = len(content) // 2
    parts = [(f"bytes={half}-", content[half:]), ("bytes=0-9", content[:10]), ("bytes=-7", content[-7:])]
    for asked, expected in parts if has_suffixes else parts[:-1]:
        part = visitor.get(url, headers={"range": asked, "accept-encoding": "identity"} | options.get("headers", {}))
        check(part.status_code == 206 and part.content == expected,
              f"GET {url} with {asked}: {part.status_code}, {len(part.content)} bytes instead of {len(expected)}")


def say(text):
    print(text, file=sys.stderr, flush=True)
