"""Debian's docker-registry, with skopeo as its client, and large layers by HTTP/1.1 and HTTP/2."""

import gzip
import hashlib
import json
import os

from stage import AUTHORITY, SRV, check, client, pieces, ranged, run

TITLE, SITE, HOSTS = "Docker registry", "registry", ["registry.example.org"]
LAYER = 200_000_000
BASE = "https://registry.example.org"
CONFIG = """\
version: 0.1
log: { level: info }
storage: { filesystem: { rootdirectory: /srv/registry/data }, delete: { enabled: true } }
http: { addr: "127.0.0.1:5000", headers: { X-Content-Type-Options: [nosniff] } }
"""


class Application:
    def __init__(self, stage):
        self.stage = stage

    def version(self):
        return run("docker-registry", "--version").split()[-1]

    def start(self):
        folder = self.stage.folder("registry")
        (folder / "config.yml").write_text(CONFIG)
        (folder / "htpasswd").write_text(run("htpasswd", "-Bbn", "ada", "secret word"))
        self.stage.start("registry", ["docker-registry", "serve", folder / "config.yml"], "listening on")

    def visitor(self, http2=True):
        return client(BASE, http2, auth=("ada", "secret word"))

    def login(self):
        self.skopeo("login", "--username", "ada", "--password", "secret word", "registry.example.org")
        with client(BASE) as stranger:
            refused = stranger.get("/v2/")
        check(refused.status_code == 401 and refused.headers.get("www-authenticate", "").startswith('Basic realm="Registry realm"'),
              f"a stranger gets {refused.status_code} and {refused.headers.get('www-authenticate')}")
        check(refused.headers.get("docker-distribution-api-version") == "registry/2.0", "a 401 does not say the API's version")
        with self.visitor() as visitor:
            let_in = visitor.get("/v2/")
            check(let_in.status_code == 200 and let_in.headers.get("docker-distribution-api-version") == "registry/2.0",
                  f"the password leads to {let_in.status_code}")
            old = visitor.get("/v2/", headers={"user-agent": "docker/1.4.1"})
            check(old.status_code == 404, f"an old client gets {old.status_code}")
            middle = visitor.get("/v2/", headers={"user-agent": "docker/1.5.2-dev"})
            check(middle.status_code == 200, f"docker 1.5.2-dev gets {middle.status_code}")

    def skopeo(self, *words):
        environment = os.environ | {"SSL_CERT_FILE": str(AUTHORITY), "HOME": str(SRV), "XDG_RUNTIME_DIR": str(SRV)}
        return run("skopeo", "--insecure-policy", *words, env=environment)

    def upload(self):
        self.image()
        self.skopeo("copy", "oci:/srv/image:first", "docker://registry.example.org/team/app:first")
        for http2 in False, True:
            self.pushed(http2)

    def image(self):
        """An image with one layer, as a folder."""
        blobs = self.stage.folder("image/blobs/sha256")
        layer = gzip.compress(os.urandom(20_000_000), 1)
        def blob(content):
            digest = hashlib.sha256(content).hexdigest()
            (blobs / digest).write_bytes(content)
            return {"digest": f"sha256:{digest}", "size": len(content)}
        config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}).encode()
        kind = "application/vnd.oci.image"
        manifest = {"schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json",
                    "config": {"mediaType": f"{kind}.config.v1+json"} | blob(config),
                    "layers": [{"mediaType": f"{kind}.layer.v1.tar+gzip"} | blob(layer)]}
        self.layer = layer
        entry = {"mediaType": manifest["mediaType"], "annotations": {"org.opencontainers.image.ref.name": "first"}}
        entry |= blob(json.dumps(manifest).encode())
        (SRV / "image/index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
        (SRV / "image/oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def pushed(self, http2):
        """Pushes a large layer as Docker does: begun, sent in one piece of unknown length, ended with its hash."""
        content = os.urandom(1_000_000) * (LAYER // 1_000_000)
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        repository = f"/v2/team/large{2 if http2 else 1}"
        with self.visitor(http2) as visitor:
            begun = visitor.post(f"{repository}/blobs/uploads/")
            check(begun.status_code == 202, f"an upload begins with {begun.status_code}")
            check(begun.http_version == ("HTTP/2" if http2 else "HTTP/1.1"), f"it goes over {begun.http_version}")
            at = begun.headers["location"]
            check(at.startswith(f"{BASE}{repository}/"), f"it is to go on at {at}")
            sent = visitor.patch(at, content=pieces(content), headers={"content-type": "application/octet-stream"})
            check(sent.status_code == 202, f"200 MB over {begun.http_version} lead to {sent.status_code}")
            end = sent.headers["location"]
            ended = visitor.put(end + ("&" if "?" in end else "?") + f"digest={digest}")
            check(ended.status_code == 201, f"the end of an upload leads to {ended.status_code}: {ended.text[:300]}")
            head = visitor.head(f"{repository}/blobs/{digest}")
            check(head.status_code == 200 and head.headers["content-length"] == str(LAYER), "the layer is not there as it was sent")
        self.large = getattr(self, "large", []) + [(f"{repository}/blobs/{digest}", content)]

    def download(self):
        said = self.skopeo("copy", "docker://registry.example.org/team/app:first", f"dir:{SRV}/fetched")
        fetched = SRV / "fetched" / hashlib.sha256(self.layer).hexdigest()
        check(fetched.is_file() and fetched.read_bytes() == self.layer, f"skopeo fetched another layer: {said}")
        tags = json.loads(self.skopeo("list-tags", "docker://registry.example.org/team/app"))
        check(tags["Tags"] == ["first"], f"the tags are {tags}")
        for http2 in False, True:
            with self.visitor(http2) as visitor:
                for url, content in self.large:
                    ranged(visitor, url, content)
