//! The servers' configurations, published in docs/performance.

/// The places where a server finds what it serves, and where it listens.
pub struct ConfigInput<'p> {
    /// The folder with the certificate and its key, as the server sees it.
    pub folder: &'p str,
    pub site: &'p str,
    /// Its port on 127.0.0.1.
    pub port: u16,
    pub has_http2: bool,
    /// True if kettle serves in its sandbox.
    pub is_confined: bool,
}

impl ConfigInput<'_> {
    /// kettle.toml for a `path` and a largest file kept in memory.
    pub fn kettle(&self, path: &str, hot_file: &str) -> String {
        let text = self.fill(KETTLE).replace("@PATH@", path).replace("@HOT_FILE@", hot_file);
        let sandbox = if self.is_confined { "required" } else { "off" };
        text.replace("@HTTP2@", &self.has_http2.to_string()).replace("@SANDBOX@", sandbox)
    }

    /// kettle.toml for tunnels by a `path` to a plain server on port 8080.
    pub fn tunnel(&self, path: &str) -> String {
        self.fill(TUNNEL).replace("@PATH@", path)
    }

    /// kettle.toml for responses of the same plain server that are kept.
    pub fn cached(&self, path: &str, hot_file: &str) -> String {
        self.fill(CACHED).replace("@PATH@", path).replace("@HOT_FILE@", hot_file)
    }

    /// kettle.toml for responses of the same plain server that are passed on: the same without a store.
    pub fn proxied(&self, path: &str) -> String {
        let text = self.cached(path, "64 KiB");
        let tables = text.split("\n\n").filter(|table| !table.contains("cache]"));
        tables.collect::<Vec<_>>().join("\n\n") + "\n"
    }

    /// nginx.conf with or without kTLS and sendfile.
    pub fn nginx(&self, has_ktls: bool, has_sendfile: bool) -> String {
        self.fill(NGINX)
            .replace("@OPTIONS@", if has_ktls { "KTLS" } else { "-KTLS" })
            .replace("@SENDFILE@", if has_sendfile { "on" } else { "off" })
            .replace("@HTTP2@", if self.has_http2 { "on" } else { "off" })
    }

    fn fill(&self, template: &str) -> String {
        template
            .replace("@FOLDER@", self.folder)
            .replace("@SITE@", self.site)
            .replace("@PORT@", &self.port.to_string())
    }
}

const KETTLE: &str = include_str!("../../../docs/performance/kettle.toml");
const TUNNEL: &str = include_str!("../../../docs/performance/tunnel.toml");
const CACHED: &str = include_str!("../../../docs/performance/cached.toml");
const NGINX: &str = include_str!("../../../docs/performance/nginx.conf");
