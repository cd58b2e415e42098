//! The servers whose work is counted, each with its configuration.

use super::super::configs::ConfigInput;

pub struct MeasuredServer {
    pub name: &'static str,
    /// True if its connections move into the kernel; unknown if that depends on the size.
    pub is_offloaded: Option<bool>,
    config: Config,
}

enum Config {
    Kettle { path: &'static str, hot_file: &'static str },
    Tunnel { path: &'static str },
    Cached { path: &'static str, hot_file: &'static str },
    Proxied { path: &'static str },
    Nginx { has_ktls: bool, has_sendfile: bool },
}

/// Part of a name: the guest's script asks for HTTP/2.
const HTTP2: &str = "-http2-";
/// Part of a name: nothing is remembered, and files lie on a file system that says what is in memory.
const COLD: &str = "-cold-";
/// The end of a name: without the sandbox, which all others are in.
const UNCONFINED: &str = "-unconfined";

impl MeasuredServer {
    /// Its configuration and the ending of the file it is in.
    pub fn config(&self) -> (String, &'static str) {
        // The certificate is made in the guest, and what is served comes with the scripts.
        let input = ConfigInput {
            folder: "/run/measure",
            site: if self.name.contains(COLD) {
                "/run/measure/site"
            } else {
                "/kettle/measure/site"
            },
            port: 8443,
            has_http2: self.name.contains(HTTP2),
            is_confined: !self.name.ends_with(UNCONFINED),
        };
        let (text, ending) = match self.config {
            Config::Kettle { path, hot_file } => (input.kettle(path, hot_file), "toml"),
            Config::Tunnel { path } => (input.tunnel(path), "toml"),
            Config::Cached { path, hot_file } => (input.cached(path, hot_file), "toml"),
            Config::Proxied { path } => (input.proxied(path), "toml"),
            Config::Nginx { has_ktls, has_sendfile } => {
                (input.nginx(has_ktls, has_sendfile), "conf")
            }
        };
        match self.name.contains(COLD) {
            true => (text.replace("[limits]\n", FORGETFUL), ending),
            false => (text, ending),
        }
    }

    pub fn is_kettle(&self) -> bool {
        !matches!(self.config, Config::Nginx { .. })
    }

    /// Returns its name in results: `kettle kernel-write`.
    pub fn subject(&self) -> String {
        self.name.replacen('-', " ", 1)
    }
}

/// Limits of a server that remembers nothing.
const FORGETFUL: &str = "[limits]\nhot_memory = \"0 B\"\nopen_files = 0\n";

pub const SERVERS: &[MeasuredServer] = &[
    server("kettle-user", Some(false), kettle("user")),
    server("kettle-user-unconfined", Some(false), kettle("user")),
    server("kettle-kernel-write", Some(true), kettle("kernel-write")),
    // With small files in memory there would be no file to send from.
    server(
        "kettle-kernel-sendfile",
        Some(true),
        Config::Kettle { path: "kernel-sendfile", hot_file: "0 B" },
    ),
    server("kettle-auto", None, kettle("auto")),
    server("kettle-tunnel-user", Some(false), Config::Tunnel { path: "user" }),
    server("kettle-tunnel-kernel-splice", Some(true), Config::Tunnel { path: "kernel-splice" }),
    // The guest's script sends the body instead of fetching it. Nothing moves: all is opened in user space.
    server("kettle-tunnel-to-backend", Some(false), Config::Tunnel { path: "user" }),
    // The guest's script sees to it that all is kept before it counts.
    server("kettle-cached-user", Some(false), cached("user")),
    server(
        "kettle-cached-kernel-sendfile",
        Some(true),
        Config::Cached { path: "kernel-sendfile", hot_file: "0 B" },
    ),
    // A file that is looked for and read from the page cache at each request.
    server("kettle-cold-user", Some(false), kettle("user")),
    // The same of an object of a store.
    server("kettle-cached-cold-user", Some(false), cached("user")),
    // Of 1 KiB alone: how much of a longer body is there when its turn comes is a matter of ticks.
    server("kettle-proxy-user", Some(false), Config::Proxied { path: "user" }),
    server("kettle-proxy-kernel-write", Some(true), Config::Proxied { path: "kernel-write" }),
    server("nginx-user", Some(false), Config::Nginx { has_ktls: false, has_sendfile: true }),
    server("nginx-kernel-write", Some(true), Config::Nginx { has_ktls: true, has_sendfile: false }),
    server(
        "nginx-kernel-sendfile",
        Some(true),
        Config::Nginx { has_ktls: true, has_sendfile: true },
    ),
    server("kettle-http2-user", Some(false), kettle("user")),
    // The guest's script asks for up to a hundred files at once.
    server("kettle-http2-user-at-once", Some(false), kettle("user")),
    server("kettle-http2-kernel-write", Some(true), kettle("kernel-write")),
    server("nginx-http2-user", Some(false), Config::Nginx { has_ktls: false, has_sendfile: true }),
    server(
        "nginx-http2-user-at-once",
        Some(false),
        Config::Nginx { has_ktls: false, has_sendfile: true },
    ),
    server(
        "nginx-http2-kernel-sendfile",
        Some(true),
        Config::Nginx { has_ktls: true, has_sendfile: true },
    ),
];

const fn server(name: &'static str, is_offloaded: Option<bool>, config: Config) -> MeasuredServer {
    MeasuredServer { name, is_offloaded, config }
}

const fn kettle(path: &'static str) -> Config {
    Config::Kettle { path, hot_file: HOT_FILE }
}

const fn cached(path: &'static str) -> Config {
    Config::Cached { path, hot_file: HOT_FILE }
}

/// The largest file that is kept in memory.
const HOT_FILE: &str = "64 KiB";
