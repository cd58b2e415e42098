//! The servers whose work is counted, each with its configuration.

use super::super::configs::ConfigInput;

/// A server with one configuration.
pub struct MeasuredServer {
    /// Its name in the tables.
    pub name: &'static str,
    /// Whether its connections move into the kernel; unknown if that depends on the size.
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

    /// Whether it is kettle.
    pub fn is_kettle(&self) -> bool {
        !matches!(self.config, Config::Nginx { .. })
    }

    /// How results name it: `kettle kernel-write`.
    pub fn subject(&self) -> String {
        self.name.replacen('-', " ", 1)
    }
}

/// Limits of a server that remembers nothing.
const FORGETFUL: &str = "[limits]\nhot_memory = \"0 B\"\nopen_files = 0\n";

/// All of them.
pub const SERVERS: &[MeasuredServer] = &[
    MeasuredServer {
        name: "kettle-user",
        is_offloaded: Some(false),
        config: Config::Kettle { path: "user", hot_file: "64 KiB" },
    },
    MeasuredServer {
        name: "kettle-user-unconfined",
        is_offloaded: Some(false),
        config: Config::Kettle { path: "user", hot_file: "64 KiB" },
    },
    MeasuredServer {
        name: "kettle-kernel-write",
        is_offloaded: Some(true),
        config: Config::Kettle { path: "kernel-write", hot_file: "64 KiB" },
    },
    MeasuredServer {
        name: "kettle-kernel-sendfile",
        is_offloaded: Some(true),
        // With small files in memory there would be no file to send from.
        config: Config::Kettle { path: "kernel-sendfile", hot_file: "0 B" },
    },
    MeasuredServer {
        name: "kettle-auto",
        is_offloaded: None,
        config: Config::Kettle { path: "auto", hot_file: "64 KiB" },
    },
    MeasuredServer {
        name: "kettle-tunnel-user",
        is_offloaded: Some(false),
        config: Config::Tunnel { path: "user" },
    },
    MeasuredServer {
        name: "kettle-tunnel-kernel-splice",
        is_offloaded: Some(true),
        config: Config::Tunnel { path: "kernel-splice" },
    },
    MeasuredServer {
        // The guest's script sends the body instead of fetching it. Nothing moves: all is opened in user space.
        name: "kettle-tunnel-to-backend",
        is_offloaded: Some(false),
        config: Config::Tunnel { path: "user" },
    },
    MeasuredServer {
        // The guest's script sees to it that all is kept before it counts.
        name: "kettle-cached-user",
        is_offloaded: Some(false),
        config: Config::Cached { path: "user", hot_file: "64 KiB" },
    },
    MeasuredServer {
        name: "kettle-cached-kernel-sendfile",
        is_offloaded: Some(true),
        config: Config::Cached { path: "kernel-sendfile", hot_file: "0 B" },
    },
    MeasuredServer {
        // A file that is looked for and read from the page cache at each request.
        name: "kettle-cold-user",
        is_offloaded: Some(false),
        config: Config::Kettle { path: "user", hot_file: "64 KiB" },
    },
    MeasuredServer {
        // The same of an object of a store.
        name: "kettle-cached-cold-user",
        is_offloaded: Some(false),
        config: Config::Cached { path: "user", hot_file: "64 KiB" },
    },
    MeasuredServer {
        // Of 1 KiB alone: how much of a longer body is there when its turn comes is a matter of ticks.
        name: "kettle-proxy-user",
        is_offloaded: Some(false),
        config: Config::Proxied { path: "user" },
    },
    MeasuredServer {
        name: "kettle-proxy-kernel-write",
        is_offloaded: Some(true),
        config: Config::Proxied { path: "kernel-write" },
    },
    MeasuredServer {
        name: "nginx-user",
        is_offloaded: Some(false),
        config: Config::Nginx { has_ktls: false, has_sendfile: true },
    },
    MeasuredServer {
        name: "nginx-kernel-write",
        is_offloaded: Some(true),
        config: Config::Nginx { has_ktls: true, has_sendfile: false },
    },
    MeasuredServer {
        name: "nginx-kernel-sendfile",
        is_offloaded: Some(true),
        config: Config::Nginx { has_ktls: true, has_sendfile: true },
    },
    MeasuredServer {
        name: "kettle-http2-user",
        is_offloaded: Some(false),
        config: Config::Kettle { path: "user", hot_file: "64 KiB" },
    },
    MeasuredServer {
        // The guest's script asks for up to a hundred files at once.
        name: "kettle-http2-user-at-once",
        is_offloaded: Some(false),
        config: Config::Kettle { path: "user", hot_file: "64 KiB" },
    },
    MeasuredServer {
        name: "kettle-http2-kernel-write",
        is_offloaded: Some(true),
        config: Config::Kettle { path: "kernel-write", hot_file: "64 KiB" },
    },
    MeasuredServer {
        name: "nginx-http2-user",
        is_offloaded: Some(false),
        config: Config::Nginx { has_ktls: false, has_sendfile: true },
    },
    MeasuredServer {
        name: "nginx-http2-user-at-once",
        is_offloaded: Some(false),
        config: Config::Nginx { has_ktls: false, has_sendfile: true },
    },
    MeasuredServer {
        name: "nginx-http2-kernel-sendfile",
        is_offloaded: Some(true),
        config: Config::Nginx { has_ktls: true, has_sendfile: true },
    },
];
