//! Configurations and requests by chance, each the same for the same seed.

use std::fmt;
use std::net::SocketAddr;

/// SplitMix64.
pub(super) struct Random {
    state: u64,
    /// True if it says what earlier seeds did not: each is the same for ever.
    has_more: bool,
}

/// An nginx.conf, in which `ADDRESS`, `FOLDER`, `BACKEND` and `STREAM0` stand for what they are.
pub(super) struct Configuration {
    text: String,
    streams: usize,
}

pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) host: &'static str,
    target: String,
}

impl Configuration {
    pub(super) fn streams(&self, address: impl Fn() -> SocketAddr) -> Vec<SocketAddr> {
        (0..self.streams).map(|_| address()).collect()
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Request {
    pub(super) fn get(host: &'static str, target: &str) -> Self {
        Self { method: "GET", host, target: target.to_owned() }
    }

    /// True if its path is not the one that it stands for.
    pub(super) fn is_resolved(&self) -> bool {
        ["//", "/.", "%"].iter().any(|part| self.target.contains(part))
    }

    pub(super) fn is_for_folder(&self) -> bool {
        self.target.split('?').next().is_some_and(|path| path.ends_with('/'))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let Self { method, host, target } = self;
        let body = if *method == "POST" { "Content-Length: 0\r\n" } else { "" };
        format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{body}\r\n")
            .into_bytes()
    }
}

impl fmt::Display for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} of {}", self.method, self.target, self.host)
    }
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed, has_more: seed > OLD_SEEDS }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one_of(&mut self, all: &[&'static str]) -> &'static str {
        all[self.below(all.len())]
    }

    pub(super) fn configuration(&mut self) -> Configuration {
        let mut text = "PROCESS\nhttp {\n    access_log off;\n    TEMPORARY\n".to_owned();
        text.push_str("    chunked_transfer_encoding off;\n    ssl_protocols TLSv1.2 TLSv1.3;\n");
        for table in [&TYPES[..], &DEFAULT_TYPES[..], &WHOLE[..]] {
            text.push_str(&format!("    {}\n", self.one_of(table)));
        }
        let servers = 1 + usize::from(self.is(40));
        for number in 0..servers {
            text.push_str(&self.server(number));
        }
        text.push_str("}\n");
        let streams = if self.is(25) { 1 + self.below(2) } else { 0 };
        if streams > 0 {
            let guard = self.one_of(&STREAM_GUARDS);
            text.push_str(&format!("stream {{\n    {guard}\n"));
            for number in 0..streams {
                let own = self.one_of(&STREAM_GUARDS);
                text.push_str(&format!(
                    "    server {{ listen STREAM{number}; {own} proxy_pass BACKEND; }}\n"
                ));
            }
            text.push_str("}\n");
        }
        Configuration { text, streams }
    }

    fn server(&mut self, number: usize) -> String {
        let name = ["a.example", "b.example"][number];
        let default = if self.is(20) && number == 1 { " default_server" } else { "" };
        let mut text = format!(
            "    server {{\n        listen ADDRESS ssl{default};\n        server_name {name};\n        \
             ssl_certificate ssl/example.crt;\n        ssl_certificate_key ssl/example.key;\n"
        );
        if self.is(90) {
            text.push_str("        root FOLDER/www;\n");
        }
        for _ in 0..self.below(3) {
            text.push_str(&format!("        {}\n", self.one_of(&SERVER_WORDS)));
        }
        if self.has_more && self.is(40) {
            text.push_str(&format!("        {}\n", self.one_of(&UNSAID)));
        }
        text.push_str("        location @app { proxy_pass http://BACKEND; }\n");
        let mut known = Vec::new();
        for _ in 0..self.below(6) {
            text.push_str(&self.location(&mut known, "", 2));
        }
        if self.has_more && self.is(30) {
            text.push_str(&format!("        {}\n", self.one_of(&ODD_LOCATIONS)));
        }
        text + "    }\n"
    }

    /// A location that no other one beside it is like.
    fn location(&mut self, known: &mut Vec<&'static str>, outer: &str, depth: usize) -> String {
        let path = self.one_of(&LOCATIONS);
        let bare = path.trim_start_matches(['^', '~', '=', ' ']);
        let is_inside = bare.starts_with(outer) || path.starts_with('~');
        if known.contains(&bare) || !is_inside {
            return String::new();
        }
        known.push(bare);
        let indent = "    ".repeat(4 - depth);
        let mut text = format!("{indent}location {path} {{\n");
        for _ in 0..self.below(3) {
            text.push_str(&format!("{indent}    {}\n", self.one_of(&WORDS)));
        }
        if depth > 1 && self.is(15) && !path.starts_with('=') {
            text.push_str(&self.location(&mut Vec::new(), bare.trim_end_matches('$'), depth - 1));
        }
        text + &format!("{indent}}}\n")
    }

    pub(super) fn request(&mut self) -> Request {
        let method = self.one_of(&["GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST"]);
        let host = self.one_of(&["a.example", "a.example", "a.example", "b.example", "c.example"]);
        let mut target = self.one_of(&TARGETS).to_owned();
        if self.is(6) {
            target.push_str("?x=1");
        }
        Request { method, host, target }
    }
}

/// The last seed for which configurations have nothing of [`UNSAID`].
const OLD_SEEDS: u64 = 1_795_946_000_000_000;

const TYPES: [&str; 5] = [
    "",
    "types { text/html html htm; text/css css; image/svg+xml svg; application/javascript js; text/plain txt; }",
    "types { text/html html; }",
    "types { }",
    "types { text/plain html js svg txt; text/xml xml; application/rss+xml rss; }",
];

const DEFAULT_TYPES: [&str; 5] = [
    "",
    "default_type application/octet-stream;",
    "default_type text/plain;",
    "default_type text/html;",
    "",
];

/// What stands in all of `http`.
const WHOLE: [&str; 12] = [
    "",
    "",
    "",
    "",
    "index a.txt index.html;",
    "autoindex on;",
    "deny 127.0.0.1;",
    "allow 127.0.0.1; deny all;",
    "add_header X-A b;",
    "error_page 404 /a.html;",
    "root FOLDER/other;",
    "merge_slashes off;",
];

const SERVER_WORDS: [&str; 16] = [
    "index a.html index.html;",
    "autoindex on;",
    "deny 127.0.0.1;",
    "allow 127.0.0.1; deny all;",
    "auth_basic x; auth_basic_user_file FOLDER/users;",
    "try_files $uri =404;",
    "try_files $uri $uri/ /index.html;",
    "return 403;",
    "return 301 /a.txt;",
    "error_page 404 /a.html;",
    "error_page 404 = @app;",
    "rewrite ^/sub/(.*)$ /pub/$1 last;",
    "rewrite ^/pub/(.*)$ /up/$1 redirect;",
    "if ($request_method = POST) { return 405; }",
    "types { }",
    "disable_symlinks on;",
];

/// What a server asks before its locations, and kettle cannot say, or not all of it.
const UNSAID: [&str; 12] = [
    "if ($uri ~ (?<!x)a) { return 403; }",
    "if ($request_method ~ (?<!x)OST) { rewrite ^/sub/ /pub/a.txt last; }",
    "if ($args ~ (?<!y)x) { return 302 /a.txt; }",
    "if ($uri ~ (?<!x)a) { rewrite ^/pub/(.*)$ /up/$1 break; } if ($args) { return 404; }",
    "rewrite ^/sub(?<!x)/(.*)$ /pub/$1 last;",
    "rewrite ^/up/(.*)$ /pub/$1 last; rewrite ^/pub(?<!x)/(.*)$ /sub/$1 last; rewrite ^/adm/ /a.txt last;",
    "set $a 0; if ($uri ~ ^/sub) { set $a 1; } rewrite ^/sub/(.*)$ /pub/$1; if ($a) { return 403; }",
    "set $a 0; if ($uri ~ ^/pub) { set $a 1; } rewrite ^/pub/(.*)$ /up/$1; location /up { if ($a) { return 403; } }",
    "set $a 0; if ($args) { set $a 1; } rewrite ^/sub/(.*)$ /pub/$1? last; location /pub { if ($a) { return 403; } }",
    "set $a 0; if ($uri ~ (?<!x)a) { set $a 1; } location /adm { if ($a) { return 403; } }",
    "if ($args) { rewrite ^/sub/ /a.txt last; } if ($request_method = POST) { return 405; }",
    "if ($args ~ (?<!y)x) { break; } rewrite ^/sub/(.*)$ /pub/$1 last;",
];

/// What no place of kettle is like.
const ODD_LOCATIONS: [&str; 8] = [
    "location /sub?x { return 200 said; }",
    "location /a#b { deny all; }",
    "location ~ /(?R)x { deny all; }",
    "location ~ (?<!x)\\.js$ { deny all; }",
    "location ^~ /up { location ~ (?<!x)html$ { deny all; } }",
    "location /pub { location ~ /(?R)?x { deny all; } }",
    "location ~ ^/(?!sub|pub) { deny all; }",
    "location ~ ^/((?!sub).)*$ { deny all; }",
];

const LOCATIONS: [&str; 40] = [
    "/",
    "/",
    "/",
    "/sub/",
    "/sub",
    "^~ /sub/",
    "/sub/deep/",
    "/pub/",
    "/pub",
    "^~ /pub",
    "/adm",
    "/adm/",
    "/up/",
    "/up",
    "^~ /up/",
    "/api/",
    "/api",
    "/api/event",
    "/a",
    "/empty/",
    "/php/",
    "/.well-known/",
    "= /",
    "= /a.txt",
    "= /sub",
    "= /sub/",
    "= /sub/a.txt",
    "= /api/event",
    "= /index.html",
    "~ /\\.",
    "~ \\.php$",
    "~ \\.php",
    "~* \\.(js|svg)$",
    "~ ^/sub/",
    "~ \\.html$",
    "~* \\.TXT$",
    "~ ^/pub/(.*)$",
    "~ a\\.txt",
    "~ ^/(up|adm)",
    "~* ^/up/.*\\.(html?|svg)$",
];

const WORDS: [&str; 46] = [
    "allow 127.0.0.1; deny all;",
    "deny 127.0.0.1;",
    "deny all;",
    "deny all;",
    "allow 10.0.0.0/8; deny all;",
    "allow all;",
    "auth_basic x; auth_basic_user_file FOLDER/users;",
    "auth_basic off;",
    "internal;",
    "return 403;",
    "return 404;",
    "return 200 said;",
    "return 301 /a.txt;",
    "return 302 https://x.example/;",
    "try_files $uri =404;",
    "try_files $uri $uri/ =404;",
    "try_files $uri $uri/ /index.html;",
    "try_files $uri /a.html;",
    "try_files $uri @app;",
    "try_files $uri/index.html $uri =404;",
    "try_files /a.txt =404;",
    "try_files $uri $uri.html =404;",
    "proxy_pass http://BACKEND;",
    "proxy_pass http://BACKEND;",
    "proxy_pass http://BACKEND/;",
    "proxy_pass http://BACKEND/x/;",
    "types { } default_type application/octet-stream;",
    "types { }",
    "default_type text/html;",
    "default_type text/plain;",
    "types { text/plain html svg js xml; }",
    "types { text/html txt; }",
    "root FOLDER/other;",
    "alias FOLDER/other/;",
    "alias FOLDER/other;",
    "index a.txt;",
    "index index.php index.html;",
    "autoindex on;",
    "rewrite ^/sub/(.*)$ /pub/$1 last;",
    "rewrite ^ /a.txt break;",
    "error_page 404 /a.html;",
    "error_page 404 = @app;",
    "expires 1h;",
    "add_header X-A b;",
    "limit_except GET { deny all; }",
    "if ($request_method = POST) { return 405; }",
];

const STREAM_GUARDS: [&str; 6] = [
    "",
    "",
    "deny 127.0.0.1;",
    "allow 127.0.0.1; deny all;",
    "deny all;",
    "allow 10.0.0.0/8; deny all;",
];

const TARGETS: [&str; 64] = [
    "/",
    "/index.html",
    "/a.txt",
    "/A.TXT",
    "/a.html",
    "/a.txt/",
    "/a.txt/x",
    "/app.js",
    "/pic.svg",
    "/doc.xml",
    "/feed.rss",
    "/noextension",
    "/x.php",
    "/x.php/y",
    "/.env",
    "/%2eenv",
    "/.git/config",
    "/missing",
    "/missing/",
    "/missing.html",
    "/missing.php",
    "/sub",
    "/sub/",
    "/sub//",
    "//sub/a.txt",
    "/sub/index.html",
    "/sub/a.txt",
    "/sub/a",
    "/sub/a.html",
    "/sub/x.php",
    "/sub/.hidden",
    "/sub/deep",
    "/sub/deep/",
    "/sub/deep/a.txt",
    "/sub/missing",
    "/./sub/../a.txt",
    "/sub/../.env",
    "/sub%2Fa.txt",
    "/sub/%61.txt",
    "/subx",
    "/pub",
    "/pub/",
    "/pub/a.txt",
    "/pub/x.html",
    "/pub/missing",
    "/public",
    "/adm",
    "/adm/",
    "/adm.bak",
    "/adm/a.txt",
    "/up",
    "/up/",
    "/up/x.html",
    "/up/x.svg",
    "/up/x.js",
    "/up/x.TXT",
    "/up/a.txt",
    "/empty",
    "/empty/",
    "/php/",
    "/.well-known/a.txt",
    "/api/event",
    "/api/event/x",
    "/api/",
];
