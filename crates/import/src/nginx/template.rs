//! An nginx.conf as a template to be measured with: what decides the cost of a request stays, what belongs to its place
//! becomes a word between @.
//!
//! One server is measured, the first with TLS, with files at `/`. A directive that is not in [`KEPT`] is left out and named.

use std::fmt::Write as _;
use std::path::Path;

use kettle_config::Diagnostic;

use super::include;
use super::syntax::Directive;
use crate::Surroundings;

/// Makes the template of a configuration file; `kettle bench config` tells what its words between @ stand for.
///
/// # Errors
/// Every mistake in the grammar, files that cannot be read, and that there is no server with TLS.
pub fn template(path: &Path, surroundings: &dyn Surroundings) -> Result<String, Vec<Diagnostic>> {
    let main = include::read(path, surroundings)?;
    let https: Vec<&Directive> = blocks(&main, "http").collect();
    let with_tls = https.iter().find_map(|http| {
        let mut servers = blocks(http.inner(), "server");
        Some((*http, servers.find(|server| listens_with_tls(server))?))
    });
    let Some((http, server)) = with_tls else {
        let nobody = kettle_config::Origin { path: path.to_path_buf(), ..Default::default() };
        let message = "no server of `http` has a `listen` with `ssl`";
        let help = "measure a configuration that serves by HTTPS";
        return Err(vec![nobody.diagnostic(message, Some(help.to_owned()))]);
    };
    let mut written = Written::default();
    written.whole(&main, http, server);
    Ok(written.with_heading(path, server))
}

fn blocks<'d>(all: &'d [Directive], name: &str) -> impl Iterator<Item = &'d Directive> {
    all.iter().filter(move |directive| directive.name == name && directive.block.is_some())
}

fn listens_with_tls(server: &Directive) -> bool {
    let mut listens = server.inner().iter().filter(|directive| directive.name == "listen");
    listens.any(|listen| listen.words.iter().any(|word| word == "ssl"))
}

/// True if this is where the files at `/` come from.
fn is_root(location: &Directive) -> bool {
    location.name == "location" && matches!(location.words.as_slice(), [prefix] if prefix == "/")
}

#[derive(Default)]
struct Written {
    text: String,
    depth: usize,
    left_out: Vec<String>,
}

impl Written {
    fn whole(&mut self, main: &[Directive], http: &Directive, server: &Directive) {
        for line in [
            "worker_processes @WORKERS@;",
            "worker_cpu_affinity @AFFINITY@;",
            "daemon off;",
            "user root;",
            "pid nginx.pid;",
            "error_log stderr warn;",
        ] {
            self.line(line);
        }
        self.kept(main, &["http", "events"]);
        self.line("events {");
        for events in blocks(main, "events") {
            self.inside(|written| written.kept(events.inner(), &[]));
        }
        self.line("}");
        self.line("http {");
        self.inside(|written| {
            for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
                written.line(&format!("{name}_temp_path {name};"));
            }
            // As nginx does where nothing is said.
            if !http.inner().iter().any(|directive| directive.name == "access_log") {
                written.line(ACCESS_LOG);
            }
            written.kept(http.inner(), &["server"]);
            written.line("server {");
            written.inside(|written| written.server(server));
            written.line("}");
        });
        self.line("}");
    }

    fn server(&mut self, server: &Directive) {
        for line in [
            "listen @ADDRESS@ ssl reuseport backlog=65535;",
            "server_name localhost;",
            "ssl_certificate @CERTIFICATE@;",
            "ssl_certificate_key @KEY@;",
        ] {
            self.line(line);
        }
        self.kept(server.inner(), &PLACE);
        self.line("location / {");
        self.inside(|written| {
            for location in server.inner().iter().filter(|directive| is_root(directive)) {
                written.kept(location.inner(), &PLACE);
            }
            written.line("root @SITE@;");
        });
        self.line("}");
    }

    /// The directives that decide what a request costs. Those in `known` are written by somebody else.
    fn kept(&mut self, directives: &[Directive], known: &[&str]) {
        for directive in directives {
            let name = directive.name.as_str();
            if name == "access_log" {
                self.access_log(directive);
            } else if KEPT.contains(&name) && is_of_any_place(directive) {
                self.directive(directive);
            } else if !(known.contains(&name) || GIVEN.contains(&name) || is_root(directive)) {
                let origin = &directive.origin;
                self.left_out.push(format!(
                    "{name} ({}:{})",
                    origin.path.display(),
                    origin.at.line
                ));
            }
        }
    }

    /// In the folder of the measurement; a format may have variables of modules and tables that are not here.
    fn access_log(&mut self, directive: &Directive) {
        if directive.word(0) == "off" {
            return self.line("access_log off;");
        }
        let mut line = ACCESS_LOG.trim_end_matches(';').to_owned();
        for word in directive.words.iter().skip(1) {
            if ["buffer=", "flush=", "gzip"].iter().any(|kept| word.starts_with(kept)) {
                line.push(' ');
                line.push_str(word);
            }
        }
        self.line(&(line + ";"));
    }

    fn directive(&mut self, directive: &Directive) {
        let mut line = quoted(&directive.name);
        for word in &directive.words {
            line.push(' ');
            line.push_str(&quoted(word));
        }
        match &directive.block {
            None => self.line(&(line + ";")),
            Some(inner) => {
                self.line(&(line + " {"));
                self.inside(|written| inner.iter().for_each(|it| written.directive(it)));
                self.line("}");
            }
        }
    }

    fn inside(&mut self, write: impl FnOnce(&mut Self)) {
        self.depth += 1;
        write(self);
        self.depth -= 1;
    }

    fn line(&mut self, line: &str) {
        let indentation = self.depth * 4;
        let _ = writeln!(self.text, "{:indentation$}{line}", "");
    }

    fn with_heading(self, path: &Path, server: &Directive) -> String {
        let Self { text, left_out, .. } = self;
        let file = server.origin.path.display();
        let line = server.origin.at.line;
        let mut whole = format!(
            "# {} to be measured with: its server at {file}:{line}, with files of the measurement at `/`.\n",
            path.display()
        );
        let shown = left_out.iter().take(LEFT_OUT_SHOWN_MAX).cloned().collect::<Vec<_>>();
        if !shown.is_empty() {
            let _ = writeln!(whole, "# Left out: {}", shown.join(", "));
        }
        let more = left_out.len() - shown.len();
        if more > 0 {
            let _ = writeln!(whole, "# and {more} more");
        }
        // Text read from a file could look like a word of ours only here.
        whole = whole.replace('@', "(at)");
        whole + &text
    }
}

/// True if nothing in it has to do with a place: no variable that a table or module would give, no word between @, no file.
fn is_of_any_place(directive: &Directive) -> bool {
    let is_plain = |text: &String| !text.contains(['@', '$', '\n']) && !text.starts_with('/');
    is_plain(&directive.name)
        && directive.words.iter().all(is_plain)
        && directive.inner().iter().all(is_of_any_place)
}

fn quoted(word: &str) -> String {
    let is_bare = |letter: char| {
        !letter.is_whitespace() && !matches!(letter, ';' | '{' | '}' | '"' | '\'' | '\\' | '#')
    };
    if !word.is_empty() && word.chars().all(is_bare) {
        return word.to_owned();
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Directives of the place, which the template says itself.
const GIVEN: [&str; 10] = [
    "worker_processes",
    "worker_cpu_affinity",
    "daemon",
    "user",
    "pid",
    "error_log",
    "client_body_temp_path",
    "proxy_temp_path",
    "fastcgi_temp_path",
    "log_format",
];
/// The same of a server and its files.
const PLACE: [&str; 6] =
    ["listen", "server_name", "ssl_certificate", "ssl_certificate_key", "root", "index"];

const ACCESS_LOG: &str = "access_log @FOLDER@/access.log combined;";

/// The directives that decide the cost of a handshake, of a request for a file, or of its bytes.
const KEPT: [&str; 75] = [
    // The process and its events.
    "accept_mutex",
    "multi_accept",
    "pcre_jit",
    "thread_pool",
    "timer_resolution",
    "use",
    "worker_aio_requests",
    "worker_connections",
    "worker_rlimit_nofile",
    // Files and their bytes.
    "aio",
    "directio",
    "directio_alignment",
    "disable_symlinks",
    "etag",
    "if_modified_since",
    "limit_rate",
    "limit_rate_after",
    "max_ranges",
    "open_file_cache",
    "open_file_cache_errors",
    "open_file_cache_min_uses",
    "open_file_cache_valid",
    "output_buffers",
    "postpone_output",
    "read_ahead",
    "sendfile",
    "sendfile_max_chunk",
    "subrequest_output_buffer_size",
    "tcp_nodelay",
    "tcp_nopush",
    // Requests and connections.
    "client_body_buffer_size",
    "client_body_timeout",
    "client_header_buffer_size",
    "client_header_timeout",
    "client_max_body_size",
    "connection_pool_size",
    "keepalive_disable",
    "keepalive_min_timeout",
    "keepalive_requests",
    "keepalive_time",
    "keepalive_timeout",
    "large_client_header_buffers",
    "lingering_close",
    "lingering_time",
    "lingering_timeout",
    "request_pool_size",
    "reset_timedout_connection",
    "send_lowat",
    "send_timeout",
    "underscores_in_headers",
    // TLS.
    "ssl_buffer_size",
    "ssl_ciphers",
    "ssl_conf_command",
    "ssl_early_data",
    "ssl_ecdh_curve",
    "ssl_prefer_server_ciphers",
    "ssl_protocols",
    "ssl_session_cache",
    "ssl_session_tickets",
    "ssl_session_timeout",
    // The headers of responses.
    "add_header",
    "charset",
    "charset_types",
    "default_type",
    "expires",
    "gzip",
    "gzip_comp_level",
    "gzip_http_version",
    "gzip_min_length",
    "gzip_proxied",
    "gzip_types",
    "gzip_vary",
    "server_tokens",
    "types",
    "types_hash_max_size",
];
const LEFT_OUT_SHOWN_MAX: usize = 60;

#[cfg(test)]
mod tests;
