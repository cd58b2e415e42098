//! The services that lie behind a site: a program that is asked by FastCGI, a service that says who may come in, a text that is
//! compressed on its way; and downloads at a bounded rate.

use super::Kind;

/// The tables of kettle.toml behind its last route. `port` is that of the origin.
pub fn kettle(kind: Kind, port: u16) -> String {
    let (settings, backend) = match kind {
        Kind::Programs => ("backend = \"plain\"\nfastcgi = {}\n", "protocol = \"fastcgi\"\n"),
        Kind::KeptPrograms => {
            ("backend = \"plain\"\nfastcgi = {}\n", "protocol = \"fastcgi\"\nkeep_alive = 16\n")
        }
        Kind::Proxied => ("\n[[site.route]]\nprefix = \"/p\"\nbackend = \"plain\"\n", ""),
        Kind::Checks => ("forward_auth = { backend = \"plain\", path = \"/check\" }\n", ""),
        Kind::Texts => {
            ("\n[[site.route]]\nprefix = \"/t\"\nbackend = \"plain\"\ncompress = [\"gzip\"]\n", "")
        }
        Kind::Downloads => return format!("limit_rate = \"{RATE_KIB} KiB\"\n"),
        _ => return String::new(),
    };
    format!(
        "{settings}\n[[backend]]\nname = \"plain\"\n{backend}\n[[backend.server]]\naddress = \"127.0.0.1:{port}\"\n\n"
    )
}

/// Returns the text of nginx.conf for it: outside of the server, and in it.
pub fn nginx(kind: Kind, port: u16) -> (String, String) {
    let within = match kind {
        Kind::Programs => format!("{NGINX_PROGRAMS}}}\n"),
        Kind::KeptPrograms => format!("{NGINX_PROGRAMS}fastcgi_keep_conn on;\n}}\n"),
        Kind::Proxied => {
            format!("location /p {{ proxy_pass http://plain;\n{NGINX_FORWARDS}{NGINX_KEEPS}")
        }
        Kind::Checks => format!(
            "{NGINX_CHECKED}location = /check {{ internal; proxy_pass http://plain/check;\n{NGINX_ASKS}"
        ),
        Kind::Texts => format!(
            "location /t {{ gzip on; gzip_types text/plain; proxy_pass http://plain;\n{NGINX_KEEPS}"
        ),
        Kind::Downloads => return (String::new(), format!("limit_rate {RATE_KIB}k;\n")),
        _ => return (String::new(), String::new()),
    };
    let keep = if kind == Kind::Programs { "" } else { "keepalive 64; " };
    (format!("upstream plain {{ server 127.0.0.1:{port}; {keep}}}\n"), within)
}

/// The configuration of PHP-FPM: a process for each connection that both servers keep, of sixteen in the load.
pub fn php_config(port: u16) -> String {
    format!(
        "[global]\nerror_log = /dev/stderr\ndaemonize = no\n[www]\nuser = root\ngroup = root\nlisten = 127.0.0.1:{port}\n\
         listen.backlog = 4096\npm = static\npm.max_children = 40\nphp_admin_flag[opcache.enable] = on\n"
    )
}

/// The program that is run: 1 KiB of text, whose length it says since the client of the load reads no chunks.
pub const PROGRAM: &str = "<?php header('Content-Type: text/plain'); header('Content-Length: 1024'); echo str_repeat('a', 1024);";

pub fn load(kind: Kind) -> &'static str {
    match kind {
        // Nobody knows the length of what is compressed on its way, and the client of the load reads no chunks.
        Kind::Texts => "-c 16 --http 2 --header Accept-Encoding:gzip",
        _ => "-c 16",
    }
}

/// A text as people write it.
pub const TEXT: &str = include_str!("../../../../docs/config.md");

/// Of each download, a second.
const RATE_KIB: u32 = 4;

const NGINX_PROGRAMS: &str = "location ~ \\.php$ {
include /etc/nginx/fastcgi.conf;
fastcgi_pass plain;
";
const NGINX_CHECKED: &str = "location / { auth_request /check; }\n";
/// As nginx' documentation of `auth_request` has it.
const NGINX_ASKS: &str = "proxy_http_version 1.1;
proxy_set_header Connection \"\";
proxy_pass_request_body off;
proxy_set_header Content-Length \"\";
proxy_set_header X-Original-URI $request_uri;
}
";
/// The headers that kettle sends every backend.
const NGINX_FORWARDS: &str = "proxy_set_header Host $host;
proxy_set_header X-Forwarded-For $remote_addr;
proxy_set_header X-Forwarded-Proto $scheme;
";
const NGINX_KEEPS: &str = "proxy_http_version 1.1;
proxy_set_header Connection \"\";
}
";
