"""Debian's WordPress by PHP-FPM and MariaDB: its installer, a page, an image."""

import io
import os
import re
import shutil
import struct
import zlib

from stage import SRV, check, client, field, ranged, run

TITLE, SITE, HOSTS = "WordPress", "wordpress", ["blog.example.org"]
BASE = "https://blog.example.org"
POOL = """\
[global]
error_log = /dev/stderr
daemonize = no
[www]
user = www-data
group = www-data
listen = /run/php/php-fpm.sock
listen.owner = www-data
pm = static
pm.max_children = 3
php_admin_value[upload_max_filesize] = 64M
php_admin_value[post_max_size] = 64M
"""
CONFIG = """\
<?php
define('DB_NAME', 'wordpress'); define('DB_USER', 'wordpress'); define('DB_PASSWORD', 'database word');
define('DB_HOST', 'localhost:/run/mysql.sock'); define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');
define('WP_CONTENT_DIR', '/var/lib/wordpress/wp-content'); define('WP_HTTP_BLOCK_EXTERNAL', true); define('DISABLE_WP_CRON', true);
$table_prefix = 'wp_';
"""


class Application:
    def __init__(self, stage):
        self.stage = stage

    def version(self):
        said = run("php", "-r", "require '/usr/share/wordpress/wp-includes/version.php'; echo $wp_version, ', PHP ', PHP_VERSION;")
        return said.strip()

    def start(self):
        self.database()
        for file in "/etc/wordpress/config-default.php",:
            with open(file, "w") as config:
                config.write(CONFIG)
            os.chmod(file, 0o640)
            shutil.chown(file, "root", "www-data")
        uploads = "/var/lib/wordpress/wp-content/uploads"
        shutil.rmtree(uploads)
        os.mkdir(uploads)
        shutil.chown(uploads, "www-data", "www-data")
        (SRV / "pool.conf").write_text(POOL)
        program = sorted(name for name in os.listdir("/usr/sbin") if re.fullmatch(r"php-fpm[\d.]+", name))[-1]
        self.php = self.stage.start("php-fpm", [f"/usr/sbin/{program}", "-F", "-y", SRV / "pool.conf"], "ready to handle connections")

    def database(self):
        data = self.stage.folder("mysql", "mysql")
        run("mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={data}", "--auth-root-authentication-method=socket")
        self.stage.start("mariadb", ["mariadbd", "--no-defaults", "--user=mysql", f"--datadir={data}", "--socket=/srv/mysql/mysql.sock",
                                     "--skip-networking"], "ready for connections")
        if os.path.lexists("/run/mysql.sock"):
            os.unlink("/run/mysql.sock")
        os.symlink("/srv/mysql/mysql.sock", "/run/mysql.sock")
        run("mariadb", "--no-defaults", "--socket=/srv/mysql/mysql.sock", "-e",
            "create database wordpress; grant all on wordpress.* to wordpress@localhost identified by 'database word'")

    def login(self):
        self.visitor = client(BASE)
        with client("http://blog.example.org") as plain:
            first = plain.get("/a?b", follow_redirects=False)
            check((first.status_code, first.headers["location"]) == (301, f"{BASE}/a?b"), f"port 80 leads to {first.headers}")
        page = self.visitor.get("/")
        check(page.url.path == "/wp-admin/install.php", f"the first visit leads to {page.url}, {page.status_code}: {page.text[:200]}")
        form = {"weblog_title": "A blog", "user_name": "ada", "admin_password": "a secret word", "admin_password2": "a secret word",
                "pw_weak": "on", "admin_email": "ada@example.org", "language": "", "Submit": "Install WordPress"}
        page = self.visitor.post("/wp-admin/install.php?step=2", data=form)
        check(page.status_code == 200 and "WordPress has been installed" in page.text, f"the installer says {page.status_code} {page.text[-500:]}")
        self.visitor.get("/wp-login.php")
        form = {"log": "ada", "pwd": "a secret word", "redirect_to": f"{BASE}/wp-admin/", "testcookie": "1"}
        page = self.visitor.post("/wp-login.php", data=form)
        check(page.url == f"{BASE}/wp-admin/" and page.status_code == 200 and "Howdy" in page.text, f"the password leads to {page.url}")
        check(all(cookie.secure for cookie in self.visitor.cookies.jar if "sec" in cookie.name), "a cookie is not marked as secure")
        for path, kind in (("/wp-includes/css/dashicons.min.css", "text/css"), ("/wp-admin/images/wordpress-logo.png", "image/png"),
                           ("/wp-includes/js/jquery/jquery.min.js", "application/javascript"),
                           ("/wp-content/themes/twentytwentythree/style.css", "text/css")):
            file = self.visitor.get(path)
            check(file.status_code == 200 and file.headers["content-type"] == kind, f"{path}: {file.status_code} {file.headers.get('content-type')}")

    def upload(self):
        page = self.visitor.get("/wp-admin/media-new.php")
        nonce = re.search(r'"_wpnonce":"(\w+)"', page.text) or re.search(r'name="_wpnonce" value="(\w+)"', page.text)
        check(nonce, "the page for files has no nonce")
        self.image = picture(400, 300)
        self.video = os.urandom(30_000_000)
        self.urls = []
        for name, kind, content in ("picture.png", "image/png", self.image), ("film.mp4", "video/mp4", self.video):
            form = {"name": name, "action": "upload-attachment", "_wpnonce": nonce[1]}
            sent = self.visitor.post("/wp-admin/async-upload.php", data=form, files={"async-upload": (name, io.BytesIO(content), kind)})
            said = sent.json() if sent.status_code == 200 else {}
            check(said.get("success"), f"{name} leads to {sent.status_code} {sent.text[:300]}")
            self.urls.append(said["data"]["url"])
        check(said["data"]["url"].startswith(f"{BASE}/wp-content/uploads/"), f"it is at {self.urls}")
        # By its programming interface a page is written, with a path of its own.
        page = self.visitor.get("/wp-admin/post-new.php")
        rest = re.search(r'createNonceMiddleware\(\s*"(\w+)"', page.text)
        check(rest, "the editor has no nonce")
        post = {"title": "Hello again", "content": "What I saw.", "status": "publish", "slug": "hello-again"}
        said = self.visitor.post("/index.php?rest_route=/wp/v2/posts", json=post, headers={"x-wp-nonce": rest[1]})
        check(said.status_code == 201, f"a page leads to {said.status_code} {said.text[:300]}")
        form = {"permalink_structure": "/%year%/%postname%/", "selection": "custom"}
        page = self.visitor.get("/wp-admin/options-permalink.php")
        form |= {"_wpnonce": field(page.text, "_wpnonce"), "_wp_http_referer": "/wp-admin/options-permalink.php", "submit": "Save Changes"}
        page = self.visitor.post("/wp-admin/options-permalink.php", data=form)
        check("Permalink structure updated" in page.text, f"paths with names: {page.status_code}")
        self.at = self.visitor.get(f"/?p={said.json()['id']}").url

    def download(self):
        check("/hello-again/" in str(self.at), f"the page is at {self.at}")
        with client(BASE) as reader:
            page = reader.get(self.at)
            check(page.status_code == 200 and "What I saw." in page.text, f"{self.at}: {page.status_code}")
            missing = reader.get("/2020/there-is-none/")
            check(missing.status_code == 404 and "Page not found" in missing.text, f"a page that is not there: {missing.status_code}")
            feed = reader.get("/feed/")
            check(feed.status_code == 200 and feed.headers["content-type"].startswith("application/rss+xml"), f"the feed: {feed.status_code}")
            for url, content in zip(self.urls, (self.image, self.video)):
                ranged(reader, url, content)
            check("max-age" in reader.get(self.urls[0]).headers["cache-control"], "an image may not be kept")
            named = reader.get("/wp-json/wp/v2/posts?search=again")
            check(named.status_code == 200 and len(named.json()) == 1, f"the programming interface: {named.status_code}")

    def live(self):
        """Programs among what was sent never run, and no source is shown."""
        for name, text in ("evil.php", "<?php echo 6 * 7;"), (".hidden", "hidden"):
            with open(f"/var/lib/wordpress/wp-content/uploads/{name}", "w") as file:
                file.write(text)
        with client(BASE) as stranger:
            for path in "/wp-content/uploads/evil.php", "/wp-content/uploads/.hidden", "/.htaccess", "/wp-content/uploads/evil.php/x":
                page = stranger.get(path)
                check(page.status_code in (403, 404) and "42" not in page.text[:10] and "<?php" not in page.text, f"{path}: {page.status_code}")
            page = stranger.get("/wp-config.php")
            check("DB_" not in page.text, "wp-config.php is shown")


def picture(width, height):
    """A PNG."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((x * y) % 256 for x in range(width * 3)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
