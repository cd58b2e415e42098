"""oauth2-proxy, which nginx asks before each request, before the server of events."""

import base64
import os
import re
import socket

from stage import SRV, check, client, run

from programs import events

TITLE, SITE, HOSTS = "oauth2-proxy", "oauth2-proxy", ["live.example.org"]
BASE = events.BASE


class Application(events.Application):
    def version(self):
        # It knows its own version only where its makefile built it.
        said = run("go", "version", "-m", self.stage.parts / "oauth2_proxy/oauth2-proxy")
        return re.search(r"\tmod\t\S+\tv(\S+)", said)[1]

    def start(self):
        super().start()
        (SRV / "passwords").write_text(run("htpasswd", "-Bbn", "ada", "secret word"))
        words = ["--http-address=fd:3", "--reverse-proxy", "--set-xauthrequest", "--email-domain=*", "--provider=github",
                 "--client-id=none", "--client-secret=none", "--upstream=static://202", f"--htpasswd-file={SRV}/passwords",
                 "--cookie-secret=" + base64.urlsafe_b64encode(os.urandom(32)).decode(), "--whitelist-domain=live.example.org"]
        # It does not say when it listens, so it gets a socket that does, as from systemd.
        listening = socket.create_server(("127.0.0.1", 4180))
        program = ["sh", "-c", f'exec 3<&{listening.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"', "sh", self.stage.parts / "oauth2_proxy/oauth2-proxy"]
        self.stage.start("oauth2-proxy", [*program, *words], None, pass_fds=[listening.fileno()])
        listening.close()

    def login(self):
        with client(BASE) as stranger:
            for method, path in ("GET", "/files/one.bin"), ("POST", "/files"), ("GET", "/events"):
                for headers in {}, {"x-user": "ada"}:
                    refused = stranger.request(method, path, headers=headers, follow_redirects=False)
                    is_asked = refused.status_code == 200 and 'action="/oauth2/sign_in"' in refused.text
                    check(is_asked or refused.status_code in (302, 401, 403), f"a stranger's {method} {path} with {headers}: {refused.status_code}")
        self.visitor = client(BASE)
        page = self.visitor.get("/seen?a=b")
        check('action="/oauth2/sign_in"' in page.text, f"a stranger comes to {page.url} {page.status_code} {page.text[:200]}")
        back = re.search(r'name="rd" value="([^"]*)"', page.text)
        form = {"username": "ada", "password": "secret word", "rd": back[1].replace("&amp;", "&") if back else "/"}
        page = self.visitor.post("/oauth2/sign_in", data=form)
        check(page.status_code == 200 and page.url.path == "/seen", f"the password leads to {page.url} {page.status_code}")
        welcome = self.visitor.get("/")
        check("Welcome, ada" in welcome.text, f"the application does not hear who asks: {welcome.text[:100]}")
