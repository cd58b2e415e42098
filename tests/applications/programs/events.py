"""A server of Express with better-sse and multer: events that are there at once, also while a file is on its way."""

import io
import json
import os
import threading

from stage import HERE, check, client, ranged

TITLE, SITE, HOSTS = "Express, better-sse", "events", ["live.example.org"]
BASE = "https://live.example.org"


class Application:
    def __init__(self, stage):
        self.stage = stage
        self.modules = stage.parts / "npm"

    def version(self):
        def of(name):
            return json.loads((self.modules / "node_modules" / name / "package.json").read_text())["version"]
        return f"{of('express')}, {of('better-sse')}"

    def start(self):
        self.stage.start("node", ["node", HERE / "programs/events.mjs", self.modules], "Listening on")

    def login(self):
        with client("http://live.example.org") as plain:
            first = plain.get("/a?b", follow_redirects=False)
            check((first.status_code, first.headers["location"]) == (301, f"{BASE}/a?b"), f"port 80 leads to {first.headers}")
        self.visitor = client(BASE)
        page = self.visitor.get("/")
        check(page.url == f"{BASE}/login", f"a stranger comes to {page.url}")
        wrong = self.visitor.post("/login", data={"name": "ada", "password": "x"})
        check(wrong.status_code == 403, f"a wrong password leads to {wrong.status_code}")
        page = self.visitor.post("/login", data={"name": "ada", "password": "secret word"})
        check(page.status_code == 200 and "Welcome, ada" in page.text and page.url.path == "/", f"the password leads to {page.status_code}")
        check(page.headers.get("content-encoding") == "gzip", "the page is not compressed")
        seen = self.visitor.get("/seen").json()
        check(seen == {"protocol": "https", "host": "live.example.org", "ip": "127.0.0.1"}, f"the application sees {seen}")

    def upload(self):
        self.content = os.urandom(50_000_000)
        for http2, name in (True, "two.bin"), (False, "one.bin"):
            with client(BASE, http2, cookies=self.visitor.cookies) as visitor:
                sent = visitor.post("/files", files={"file": (name, io.BytesIO(self.content))})
                check(sent.status_code == 201 and sent.json()["size"] == len(self.content), f"a file leads to {sent.status_code} {sent.text[:200]}")

    def download(self):
        for http2, name in (True, "two.bin"), (False, "one.bin"):
            with client(BASE, http2, cookies=self.visitor.cookies) as visitor:
                ranged(visitor, f"/files/{name}", self.content)
                tagged = visitor.get(f"/files/{name}", headers={"range": "bytes=0-3"}).headers["etag"]
                same = visitor.get(f"/files/{name}", headers={"if-none-match": tagged})
                check(same.status_code == 304, f"a file that has not changed: {same.status_code}")

    def live(self):
        for http2 in True, False:
            self.heard(http2)

    def heard(self, http2):
        events, welcome, uploaded = [], threading.Event(), threading.Event()
        def read():
            with client(BASE, http2, cookies=self.visitor.cookies) as other, other.stream("GET", "/events") as stream:
                events.append(stream.headers.get("content-type"))
                for line in stream.iter_lines():
                    events.append(line.strip())
                    if line.startswith("event: welcome") or line.startswith("event:welcome"):
                        welcome.set()
                    if '"small.txt"' in line:
                        return uploaded.set()
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        # Nothing else is sent until it is here.
        check(welcome.wait(20), f"the first event does not come: {events}")
        self.visitor.post("/files", files={"file": ("small.txt", b"small")})
        check(uploaded.wait(20), f"an event does not come: {events}")
        check(events[0].startswith("text/event-stream"), f"events are {events[0]}")
        reader.join(20)
