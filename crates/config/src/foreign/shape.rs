//! Whole files of other programs that are taken for a kettle.toml, told by their shape.

/// The program that a file is for, where nothing in it could be a kettle.toml: a broken one has a header or `key = value`.
pub(crate) fn program(text: &str) -> Option<Program> {
    let lines = || text.lines().map(code).filter(|line| !line.is_empty());
    if lines().take(LINES_MAX).any(|line| is_header(line) || is_setting(line)) {
        return None;
    }
    let counts =
        |is_own: fn(&str) -> bool| lines().take(LINES_MAX).filter(|line| is_own(line)).count();
    // One word may be a slip of the pen; a block with what stands in it is none.
    let has_both =
        |opens: fn(&str) -> bool, says: fn(&str) -> bool| counts(opens) > 0 && counts(says) > 0;
    if has_both(|line| opens(line, NGINX_BLOCKS), |line| line.ends_with(';') && begins(line, NGINX))
    {
        return Some(Program::Nginx);
    }
    if has_both(|line| begins(line, HAPROXY_SECTIONS), |line| begins(line, HAPROXY)) {
        return Some(Program::Haproxy);
    }
    has_both(is_caddy_address, |line| !line.ends_with(';') && begins(line, CADDY))
        .then_some(Program::Caddy)
}

/// A program whose configuration is known by its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Nginx,
    Haproxy,
    Caddy,
}

impl Program {
    /// Returns the kind of file it is, in words.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Nginx => "this is a configuration of nginx, not of kettle",
            Self::Haproxy => "this is a configuration of HAProxy, not of kettle",
            Self::Caddy => "this is a Caddyfile, not a configuration of kettle",
        }
    }

    /// Returns what to do with it.
    pub(crate) fn help(self) -> &'static str {
        match self {
            Self::Nginx => "`kettle import nginx FILE` prints the kettle.toml that does the same",
            Self::Haproxy | Self::Caddy => {
                "kettle does not read it: `kettle reference` says what a kettle.toml may hold"
            }
        }
    }
}

/// A line without what surrounds it, and without a comment.
fn code(line: &str) -> &str {
    let line = line.trim();
    if line.starts_with('#') { "" } else { line }
}

/// A header of TOML, closed or not.
fn is_header(line: &str) -> bool {
    let name = line.trim_start_matches('[').trim_start();
    line.starts_with('[') && name.starts_with(char::is_alphabetic)
}

/// `key = value`, as no line of the others is: `location = /x {`, `set $a b=c;`.
fn is_setting(line: &str) -> bool {
    let Some((key, value)) = line.split_once('=') else { return false };
    let key = key.trim();
    if key == "location" && value.trim_start().starts_with('/') {
        return false;
    }
    let is_part = |it: char| it.is_alphanumeric() || "_-.".contains(it);
    // Formats of nginx's logs are texts in quotes, some of them with `=`.
    let bare = ['"', '\'']
        .into_iter()
        .find_map(|it| key.strip_prefix(it)?.strip_suffix(it))
        .unwrap_or(key);
    !line.ends_with('{') && !bare.is_empty() && bare.chars().all(is_part)
}

fn opens(line: &str, words: &[&str]) -> bool {
    line.ends_with('{') && begins(line, words)
}

fn begins(line: &str, words: &[&str]) -> bool {
    let first = line.split(|it: char| it.is_whitespace() || it == ';').next().unwrap_or_default();
    words.contains(&first)
}

/// Names and ports that a Caddyfile begins a site with, or its global options.
fn is_caddy_address(line: &str) -> bool {
    let Some(names) = line.strip_suffix('{') else { return is_address(line) };
    let mut names = names.split([' ', ',']).filter(|name| !name.is_empty());
    names.all(is_address)
}

fn is_address(name: &str) -> bool {
    let is_part = |it: char| it.is_ascii_alphanumeric() || "-._:*/[]{$}".contains(it);
    let is_host = name.contains(['.', ':']) || name == "localhost";
    is_host && name.chars().all(is_part)
}

/// A configuration says what it is long before.
const LINES_MAX: usize = 1000;

const NGINX_BLOCKS: &[&str] = &["http", "server", "events", "stream", "location", "upstream"];
const NGINX: &[&str] = &[
    "listen",
    "server_name",
    "root",
    "location",
    "proxy_pass",
    "return",
    "index",
    "try_files",
    "server",
    "user",
    "worker_processes",
    "worker_connections",
    "ssl_certificate",
    "include",
    "error_log",
    "access_log",
];
const HAPROXY_SECTIONS: &[&str] = &["global", "defaults", "frontend", "backend", "listen"];
const HAPROXY: &[&str] = &[
    "bind",
    "mode",
    "server",
    "timeout",
    "default_backend",
    "use_backend",
    "balance",
    "option",
    "log",
    "maxconn",
    "daemon",
];
const CADDY: &[&str] = &[
    "reverse_proxy",
    "file_server",
    "root",
    "encode",
    "respond",
    "tls",
    "php_fastcgi",
    "redir",
    "handle",
    "handle_path",
    "header",
    "basic_auth",
    "basicauth",
    "try_files",
    "import",
    "log",
];
