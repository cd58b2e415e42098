"""Gitea with git, large files of git, attachments and its stream of events."""

import io
import os
import shutil
import threading

from stage import AUTHORITY, SRV, check, client, field, ranged, run

TITLE, SITE, HOSTS = "Gitea", "gitea", ["git.example.org"]
BASE = "https://git.example.org"
PUSHED = 100_000_000
CONFIG = """\
APP_NAME = Gitea
RUN_USER = www-data
WORK_PATH = /srv/gitea
[server]
PROTOCOL = http
HTTP_ADDR = 127.0.0.1
HTTP_PORT = 3000
ROOT_URL = https://git.example.org/
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = true
STATIC_ROOT_PATH = {static}
[database]
DB_TYPE = sqlite3
PATH = /srv/gitea/gitea.db
[security]
INSTALL_LOCK = true
SECRET_KEY = for a test on loopback only
[attachment]
MAX_SIZE = 400
ALLOWED_TYPES = */*
[ui.notification]
EVENT_SOURCE_UPDATE_TIME = 1s
[log]
MODE = console
LEVEL = Info
"""


class Application:
    def __init__(self, stage):
        self.stage = stage
        self.program = stage.parts / "gitea/gitea"

    def version(self):
        return run(self.program, "--version").split()[2]

    def start(self):
        folder = self.stage.folder("gitea", "www-data")
        (folder / "app.ini").write_text(CONFIG.format(static=self.stage.parts / "gitea"))
        shutil.chown(folder / "app.ini", "www-data")
        as_it = {"user": "www-data", "group": "www-data", "extra_groups": [], "cwd": folder, "env": os.environ | {"HOME": str(folder)}}
        gitea = [self.program, "--config", folder / "app.ini"]
        run(*gitea, "migrate", **as_it)
        for name in "ada", "bob":
            run(*gitea, "admin", "user", "create", "--admin", "--username", name, "--password", "secret word", "--email",
                f"{name}@example.org", "--must-change-password=false", **as_it)
        self.stage.start("gitea", [*gitea, "web"], "Listen: http", **as_it)

    def login(self):
        self.visitor = client(BASE)
        page = self.visitor.get("/user/login")
        check(page.status_code == 200, f"the page for passwords: {page.status_code} {page.text[:300]}")
        form = {"user_name": "ada", "password": "secret word"}
        if 'name="_csrf"' in page.text:
            form["_csrf"] = field(page.text, "_csrf")
        page = self.visitor.post("/user/login", data=form, headers={"origin": BASE})
        check(page.status_code == 200 and "/user/logout" in page.text, f"the password leads to {page.status_code} {page.url}")
        check(str(page.url) == f"{BASE}/", f"it leads to {page.url}")
        self.api = client(BASE, auth=("ada", "secret word"))
        made = self.api.post("/api/v1/user/repos", json={"name": "tools", "private": True})
        check(made.status_code == 201 and made.json()["clone_url"] == f"{BASE}/ada/tools.git", f"a repository: {made.status_code} {made.text[:300]}")

    def git(self, folder, *words, version="HTTP/2"):
        environment = os.environ | {"HOME": str(SRV), "GIT_TERMINAL_PROMPT": "0", "GIT_SSL_CAINFO": str(AUTHORITY)}
        settings = {"http.version": version, "user.name": "ada", "user.email": "ada@example.org",
                    "pack.compression": "0", "filter.lfs.clean": "git-lfs clean -- %f", "filter.lfs.smudge": "git-lfs smudge -- %f",
                    "filter.lfs.process": "git-lfs filter-process", "filter.lfs.required": "true"}
        words = [*(word for name, value in settings.items() for word in ("-c", f"{name}={value}")), *words]
        return run("git", *words, cwd=folder, env=environment)

    def upload(self):
        work = self.stage.folder("work")
        self.git(work, "init", "--quiet", "--initial-branch=main")
        self.address = "https://ada:secret%20word@git.example.org/ada/tools.git"
        self.git(work, "remote", "add", "origin", self.address)
        self.files = {}
        for number, version in enumerate(["HTTP/2", "HTTP/1.1"]):
            name = f"large{number}"
            self.files[name] = os.urandom(PUSHED)
            (work / name).write_bytes(self.files[name])
            self.git(work, "add", ".")
            self.git(work, "commit", "--quiet", "-m", name)
            # More than `http.postBuffer` is sent in chunks.
            self.git(work, "push", "--quiet", "origin", "main", version=version)
        (work / ".gitattributes").write_text("*.lfs filter=lfs diff=lfs merge=lfs -text\n")
        self.files["model.lfs"] = os.urandom(20_000_000)
        (work / "model.lfs").write_bytes(self.files["model.lfs"])
        self.git(work, "add", ".")
        self.git(work, "commit", "--quiet", "-m", "a large file")
        self.git(work, "push", "--quiet", "origin", "main")
        release = self.api.post("/api/v1/repos/ada/tools/releases", json={"tag_name": "v1", "name": "one"})
        check(release.status_code == 201, f"a release: {release.status_code} {release.text[:300]}")
        self.content = os.urandom(60_000_000)
        at = f"/api/v1/repos/ada/tools/releases/{release.json()['id']}/assets?name=tools.bin"
        sent = self.api.post(at, files={"attachment": ("tools.bin", io.BytesIO(self.content))})
        check(sent.status_code == 201, f"an attachment: {sent.status_code} {sent.text[:300]}")
        self.attachment = sent.json()["browser_download_url"]
        check(self.attachment.startswith(BASE), f"it is at {self.attachment}")

    def download(self):
        for version in "HTTP/2", "HTTP/1.1":
            folder = SRV / f"clone-{version[-1]}"
            self.git(SRV, "clone", "--quiet", self.address, folder, version=version)
            for name, content in self.files.items():
                check((folder / name).read_bytes() == content, f"{name} is another one after a clone over {version}")
        # It answers 416 to a range from the end, whatever is before it.
        ranged(self.visitor, self.attachment, self.content, has_suffixes=False)
        raw = self.visitor.get("/ada/tools/raw/branch/main/large0")
        check(raw.content == self.files["large0"], f"a file of a repository: {raw.status_code}")

    def live(self):
        """The page's stream says that there is something new, when somebody else writes something."""
        events, is_open = [], threading.Event()
        def read():
            with client(BASE, cookies=self.visitor.cookies) as page, page.stream("GET", "/user/events", timeout=60) as stream:
                check(stream.headers["content-type"].startswith("text/event-stream"), f"events are {stream.headers['content-type']}")
                is_open.set()
                for line in stream.iter_lines():
                    events.append(line.strip())
                    if "notification-count" in line:
                        return
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        # nginx passes its head on with the first event, which comes after half a minute.
        check(is_open.wait(45), "the stream of events does not begin")
        with client(BASE, auth=("bob", "secret word")) as other:
            issue = other.post("/api/v1/repos/ada/tools/issues", json={"title": "hello", "body": "@ada", "assignees": ["ada"]})
        check(issue.status_code == 201, f"an issue: {issue.status_code} {issue.text[:300]}")
        reader.join(60)
        check(any("notification-count" in line for line in events), f"events are {events[:10]}")
