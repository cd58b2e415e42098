"""Django's administration, with passwords and files, by gunicorn."""

import io
import os
import shutil

from stage import HERE, SRV, check, client, field, ranged, run

TITLE, SITE, HOSTS = "Django", "django", ["shop.example.org", "www.shop.example.org"]
BASE = "https://shop.example.org"


class Application:
    def __init__(self, stage):
        self.stage = stage

    def version(self):
        return run("/usr/bin/python3", "-c", "import django; print(django.__version__)", env=self.stage.python()).strip()

    def start(self):
        folder = self.stage.folder("django/shop")
        for name in "public", "media":
            self.stage.folder(f"django/{name}", "www-data")
        for file in (HERE / "programs/shop").glob("*.py"):
            shutil.copy(file, folder / file.name)
        shutil.chown(SRV / "django", "www-data", "www-data")
        (SRV / "django/public/500.html").write_text("The shop is closed.")
        environment = self.stage.python() | {
            "DJANGO_SETTINGS_MODULE": "shop.settings", "DJANGO_SUPERUSER_PASSWORD": "secret word", "PYTHONDONTWRITEBYTECODE": "1"}
        as_it = {"cwd": SRV / "django", "env": environment}
        django = ["/usr/bin/python3", "-m", "django"]
        run(*django, "makemigrations", "shop", **as_it)
        run(*django, "migrate", **as_it)
        run(*django, "createsuperuser", "--noinput", "--username", "ada", "--email", "ada@example.org", **as_it)
        run(*django, "collectstatic", "--noinput", **as_it)
        shutil.chown(SRV / "django/db.sqlite3", "www-data", "www-data")
        self.gunicorn = self.stage.start(
            "gunicorn", ["/usr/bin/python3", "-m", "gunicorn", "--bind", "unix:/run/gunicorn.sock", "--workers", "2", "--user", "www-data",
                         "--group", "www-data", "shop.wsgi:application"], "Booting worker", **as_it)

    def login(self):
        self.visitor = client(BASE)
        page = self.visitor.get("/admin/")
        check(page.status_code == 200 and page.url.path == "/admin/login/", f"a stranger comes to {page.url}")
        form = {"username": "ada", "password": "secret word", "next": "/admin/", "csrfmiddlewaretoken": field(page.text, "csrfmiddlewaretoken")}
        page = self.visitor.post(page.url, data=form, headers={"referer": str(page.url)})
        check("Site administration" in page.text, f"the password leads to {page.status_code} {page.url}")
        check(all(cookie.secure for cookie in self.visitor.cookies.jar), "a cookie is not marked as secure")
        seen = self.visitor.get("/seen/").json()
        check(seen == {"scheme": "https", "host": "shop.example.org", "for": "127.0.0.1"}, f"the application sees {seen}")
        style = self.visitor.get("/static/admin/css/base.css")
        check(style.status_code == 200 and style.headers["content-type"].startswith("text/css"), "the style sheet is not there")

    def upload(self):
        self.content = os.urandom(30_000_000)
        page = self.visitor.get("/admin/shop/document/add/")
        form = {"title": "a document", "csrfmiddlewaretoken": field(page.text, "csrfmiddlewaretoken")}
        page = self.visitor.post(page.url, data=form, files={"file": ("report.bin", io.BytesIO(self.content))}, headers={"referer": str(page.url)})
        check(page.status_code == 200 and "was added successfully" in page.text, f"a file leads to {page.status_code}")

    def download(self):
        ranged(self.visitor, "/media/report.bin", self.content)
        with client(BASE, http2=False) as other:
            ranged(other, "/media/report.bin", self.content)
        streamed = self.visitor.get("/export/")
        check(streamed.text.count("\n") == 20000, f"a table of 20,000 lines has {streamed.text.count(chr(10))}")

    def live(self):
        """The page for errors is nginx's where the application does not answer."""
        self.stage.processes.remove(self.gunicorn)
        self.gunicorn.end()
        page = self.visitor.get("/admin/")
        check(page.status_code == 502 and page.text == "The shop is closed.", f"without gunicorn: {page.status_code} {page.text[:100]}")
        style = self.visitor.get("/static/admin/css/base.css")
        check(style.status_code == 200, "without gunicorn files are not there")
