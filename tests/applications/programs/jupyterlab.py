"""JupyterLab with its password, its files, and a kernel and a terminal by WebSocket."""

import base64
import json
import os
import ssl
import sys
import uuid

from stage import AUTHORITY, SRV, check, client, field, pieces, run

TITLE, SITE, HOSTS = "JupyterLab", "jupyterlab", ["lab.example.org"]
BASE = "https://lab.example.org"


class Application:
    def __init__(self, stage):
        self.stage = stage

    def version(self):
        return run("/usr/bin/python3", "-m", "jupyterlab", "--version", env=self.stage.python()).strip()

    def start(self):
        folder = self.stage.folder("lab", "www-data")
        python = self.stage.parts / "python"
        environment = self.stage.python() | {
            "HOME": str(folder), "SHELL": "/bin/sh", "JUPYTER_PATH": str(python / "share/jupyter"), "JUPYTER_CONFIG_PATH": str(python / "etc/jupyter")}
        hashed = run("/usr/bin/python3", "-c", "from jupyter_server.auth import passwd; print(passwd('secret word'))", env=environment)
        settings = {"ServerApp.ip": "127.0.0.1", "ServerApp.port": 8000, "ServerApp.root_dir": folder, "ServerApp.allow_remote_access": True,
                    "ServerApp.trust_xheaders": True, "ServerApp.open_browser": False,
                    "PasswordIdentityProvider.hashed_password": hashed.strip()}
        words = [f"--{name}={value}" for name, value in settings.items()]
        self.stage.start("jupyterlab", ["/usr/bin/python3", "-m", "jupyterlab", *words], "is running at", env=environment,
                         cwd=folder, user="www-data", group="www-data", extra_groups=[])

    def login(self):
        with client("http://lab.example.org") as plain:
            first = plain.get("/lab?reset", follow_redirects=False)
            check((first.status_code, first.headers["location"]) == (302, f"{BASE}/lab?reset"), f"port 80 leads to {first.headers}")
        self.visitor = client(BASE)
        page = self.visitor.get("/lab")
        check(page.url.path == "/login", f"a stranger comes to {page.url}")
        form = {"password": "secret word", "_xsrf": field(page.text, "_xsrf")}
        page = self.visitor.post(page.url, data=form)
        check(page.status_code == 200 and page.url.path == "/lab", f"the password leads to {page.status_code} {page.url}")
        check(page.headers.get("strict-transport-security") == "max-age=15768000", "a page has no Strict-Transport-Security")
        # Proof that the server knows of HTTPS: its cookie says so.
        check(any(cookie.secure for cookie in self.visitor.cookies.jar), "no cookie is marked as secure")
        self.headers = {"x-xsrftoken": self.visitor.cookies["_xsrf"], "referer": f"{BASE}/lab"}

    def upload(self):
        self.content = os.urandom(40_000_000)
        body = {"type": "file", "format": "base64", "content": base64.b64encode(self.content).decode()}
        sent = self.put("data.bin", body)
        check(sent.status_code == 201, f"a file leads to {sent.status_code} {sent.text[:300]}")
        check((SRV / "lab/data.bin").read_bytes() == self.content, "the file is another one")
        # Larger ones the page sends in pieces.
        pieces = [self.content[start:start + 10_000_000] for start in range(0, len(self.content), 10_000_000)]
        for number, piece in enumerate(pieces, 1):
            chunk = -1 if number == len(pieces) else number
            body = {"type": "file", "format": "base64", "chunk": chunk, "content": base64.b64encode(piece).decode()}
            sent = self.put("pieces%20a%26b.bin", body)
            check(sent.status_code in (200, 201), f"a piece leads to {sent.status_code} {sent.text[:300]}")
        check((SRV / "lab/pieces a&b.bin").read_bytes() == self.content, "the file of pieces is another one")

    def put(self, name, body):
        text = json.dumps(body).encode()
        # The client takes minutes for a body of one piece over HTTP/2.
        headers = self.headers | {"content-type": "application/json", "content-length": str(len(text))}
        return self.visitor.put(f"/api/contents/{name}", content=pieces(text), headers=headers)

    def download(self):
        whole = self.visitor.get("/files/data.bin", headers=self.headers)
        check(whole.status_code == 200 and whole.content == self.content, f"a file: {whole.status_code}, {len(whole.content)} bytes")
        part = self.visitor.get("/files/pieces%20a%26b.bin?download=1", headers=self.headers)
        check(part.status_code == 200 and part.content == self.content, f"a file with letters in its name: {part.status_code}")

    def connected(self, path):
        """A WebSocket as a browser of this page opens it."""
        sys.path.append(str(self.stage.parts / "python"))
        import websocket
        cookies = "; ".join(f"{name}={value}" for name, value in self.visitor.cookies.items())
        return websocket.create_connection(
            f"wss://lab.example.org{path}", cookie=cookies, origin=BASE, timeout=60,
            sslopt={"ca_certs": str(AUTHORITY), "cert_reqs": ssl.CERT_REQUIRED})

    def live(self):
        kernel = self.visitor.post("/api/kernels", json={"name": "python3"}, headers=self.headers)
        check(kernel.status_code == 201, f"a kernel: {kernel.status_code} {kernel.text[:300]}")
        session = uuid.uuid4().hex
        socket = self.connected(f"/api/kernels/{kernel.json()['id']}/channels?session_id={session}")
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": session, "version": "5.3",
                  "date": "2026-01-01T00:00:00Z"}
        # An answer of a megabyte, too.
        content = {"code": "print(6 * 7); print('x' * 1_000_000)", "silent": False, "store_history": False, "user_expressions": {},
                   "allow_stdin": False, "stop_on_error": True}
        socket.send(json.dumps({"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}))
        text = ""
        while len(text) < 1_000_004:
            message = json.loads(socket.recv())
            if message.get("msg_type") == "stream":
                text += message["content"]["text"]
            check(message.get("msg_type") != "error", f"the kernel says {message['content']}")
        check(text == "42\n" + "x" * 1_000_000 + "\n", f"the kernel says {text[:40]}")
        socket.close()
        terminal = self.visitor.post("/api/terminals", headers=self.headers)
        check(terminal.status_code == 200, f"a terminal: {terminal.status_code}")
        socket = self.connected(f"/terminals/websocket/{terminal.json()['name']}")
        socket.send(json.dumps(["stdin", "echo $((6 * 7))-done\r"]))
        said = ""
        while "42-done" not in said:
            kind, *rest = json.loads(socket.recv())
            said += rest[0] if kind == "stdout" else ""
        socket.close()
