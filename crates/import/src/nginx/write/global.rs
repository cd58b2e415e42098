//! The settings of the whole process: workers, the log, limits.

use kettle_config::quoted;

use super::Writer;
use super::route::spoken;
use crate::nginx::measure;
use crate::nginx::syntax::Directive;

impl Writer<'_> {
    pub(super) fn globals(&mut self, main: &[Directive], https: &[&Directive]) {
        self.process(main);
        self.output.text.end_table();
        self.log(main, https);
        self.output.text.end_table();
        let connections = main.iter().filter(|it| it.name == "events").flat_map(Directive::inner);
        let connections = connections.filter(|it| it.name == "worker_connections");
        self.output.text.table("[limits]", None);
        for directive in connections {
            self.number("connections_per_worker", directive, 0, 1, 1_048_576);
        }
        let first = |writer: &mut Self, name| writer.only(https, name);
        if let Some(directive) = first(self, "keepalive_timeout") {
            match measure::seconds(directive.word(0)) {
                Some(0) => {
                    let origin = Some(&directive.origin);
                    self.output.text.set("requests_per_connection", 1, origin);
                }
                _ => self.time("idle_timeout", directive, 1, 3600),
            }
            if directive.words.len() > 1 {
                let message = format!("the second time of `{}`", spoken(directive));
                self.output.warn(&directive.origin, message, "no header Keep-Alive is sent");
            }
        }
        let is_kept = first(self, "keepalive_timeout").is_none_or(|it| it.word(0) != "0");
        if let Some(directive) = first(self, "keepalive_requests").filter(|_| is_kept) {
            self.number("requests_per_connection", directive, 0, 1, 1_000_000_000);
        }
        for (key, name, max) in [
            ("request_timeout", "client_header_timeout", 600),
            ("write_timeout", "send_timeout", 3600),
        ] {
            if let Some(directive) = first(self, name) {
                self.time(key, directive, 1, max);
            }
        }
        if let Some(buffers) = first(self, "large_client_header_buffers") {
            self.head(buffers);
        }
        if let Some(cache) = first(self, "open_file_cache")
            && let Some(files) = cache.words.iter().find_map(|word| word.strip_prefix("max="))
            && let Ok(files) = files.parse::<u64>()
        {
            self.output.text.set("open_files", files.min(1_048_576), Some(&cache.origin));
            if cache.words.len() > 1 {
                let message = format!("of `{}` only max is carried over", spoken(cache));
                self.output.warn(
                    &cache.origin,
                    message,
                    "files that nobody asks for are the first to go",
                );
            }
        }
        if let Some(valid) = first(self, "open_file_cache_valid") {
            self.time("revalidate", valid, 0, 24 * 3600);
        }
        self.spool(https);
        self.output.text.end_table();
    }

    /// Room for the largest body that a backend may get, which is stored first.
    fn spool(&mut self, https: &[&Directive]) {
        let of = |name| https.iter().flat_map(move |http| every(http.inner(), name));
        let bytes = |it: &Directive| measure::bytes(it.word(0)).unwrap_or(0);
        let is_asked = of("proxy_pass").next().is_some();
        let Some(largest) = of("client_max_body_size").max_by_key(|it| bytes(it)) else { return };
        // One client has half of it.
        let bytes = bytes(largest).saturating_mul(2).min(SPOOL_BYTES_MAX);
        if is_asked && bytes > SPOOL_BYTES {
            self.output.text.set("request_spool", bytes, Some(&largest.origin));
        }
        let unbound = of("client_max_body_size").find(|it| measure::bytes(it.word(0)) == Some(0));
        if let Some(directive) = unbound.filter(|_| is_asked) {
            let help = "bodies are stored before a backend gets them, all together up to `request_spool` below [limits]";
            self.tell_of_change(directive, help);
        }
    }

    /// The largest head of a request, and what its target may take of that.
    fn head(&mut self, buffers: &Directive) {
        let count = buffers.word(0).parse::<u64>();
        let each = measure::bytes(buffers.word(1));
        let (Ok(count), Some(each)) = (count, each) else {
            return self.unreadable(buffers, "4 8k");
        };
        let head = count.saturating_mul(each).clamp(1024, 64 * 1024);
        // Fields take some of it, too.
        let target = each.clamp(64, head - head / 8);
        if target < each {
            let help =
                format!("a head may have {head} bytes, and {target} of them may be its target");
            self.tell_of_change(buffers, &help);
        }
        self.output.text.set("head", head, Some(&buffers.origin));
        self.output.text.set("target", target, Some(&buffers.origin));
    }

    fn process(&mut self, main: &[Directive]) {
        let find = |name: &str| main.iter().find(|directive| directive.name == name);
        self.output.text.table("[server]", None);
        match find("worker_processes") {
            Some(workers) if workers.word(0) == "auto" => {}
            Some(workers) => self.number("workers", workers, 0, 1, 1024),
            None => {
                self.output.text.line("workers = 1 # without this line, one for each CPU", None)
            }
        }
        if let Some(affinity) = find("worker_cpu_affinity") {
            self.output.text.set("pin_workers", "true", Some(&affinity.origin));
            if affinity.word(0) != "auto" || affinity.words.len() > 1 {
                let help = "each worker gets a processor of those that the process may use: CPUAffinity= in its unit";
                self.tell_of_change(affinity, help);
            }
        }
        match find("user") {
            Some(user) => {
                let origin = Some(&user.origin);
                self.output.text.set("user", quoted(user.word(0)), origin);
                if user.words.len() > 1 {
                    self.output.text.set("group", quoted(user.word(1)), origin);
                }
            }
            None => self.output.text.line(
                "# user = \"www-data\" # nginx has a user of its own if nothing is said; kettle serves as who started it",
                None,
            ),
        }
    }

    fn log(&mut self, main: &[Directive], https: &[&Directive]) {
        self.output.text.table("[log]", None);
        if let Some(errors) = main.iter().find(|directive| directive.name == "error_log") {
            let level = match errors.words.get(1).map(String::as_str) {
                Some("debug") => "debug",
                Some("info" | "notice") => "info",
                Some("warn") => "warn",
                _ => "error",
            };
            self.output.text.set("level", quoted(level), Some(&errors.origin));
        }
        for errors in every(main, "error_log") {
            if errors.word(0) != "stderr" {
                let help = "messages go to standard error, and from there to the journal";
                self.tell_of(errors, help);
            }
        }
        self.common_log(https);
    }

    /// A directive that holds for all in kettle: that of `http`, or else the first of a server. Others are told of.
    pub(super) fn only<'t>(
        &mut self,
        https: &[&'t Directive],
        name: &str,
    ) -> Option<&'t Directive> {
        let outermost = https.iter().flat_map(|http| http.inner()).find(|it| it.name == name);
        let all: Vec<&'t Directive> =
            https.iter().flat_map(|http| every(http.inner(), name)).collect();
        let chosen = outermost.or(all.first().copied())?;
        for other in all.iter().filter(|other| other.words != chosen.words) {
            let file = chosen.origin.path.display();
            let line = chosen.origin.at.line;
            let help = format!("it holds for all, as {file}:{line} says");
            self.tell_of(other, &help);
        }
        Some(chosen)
    }

    pub(super) fn number(
        &mut self,
        key: &str,
        directive: &Directive,
        word: usize,
        min: u64,
        max: u64,
    ) {
        match directive.word(word).parse::<u64>() {
            Ok(number) => {
                self.output.text.set(key, number.clamp(min, max), Some(&directive.origin));
            }
            Err(_) => self.unreadable(directive, "a number"),
        }
    }

    /// A time, within what kettle takes.
    pub(super) fn time(&mut self, key: &str, directive: &Directive, min: u32, max: u32) {
        match measure::seconds(directive.word(0)) {
            Some(seconds) => {
                let seconds = format!("{}s", seconds.clamp(min, max));
                self.output.text.set(key, quoted(&seconds), Some(&directive.origin));
            }
            None => self.unreadable(directive, "60s"),
        }
    }

    pub(super) fn unreadable(&mut self, directive: &Directive, example: &str) {
        let message = format!("`{}` has no such value", spoken(directive));
        let help = format!("write {} {example};", directive.name);
        self.output.find(&directive.origin, message, &help);
    }
}

/// The room of kettle where nothing is said, and at most.
const SPOOL_BYTES: u64 = 4 << 30;
const SPOOL_BYTES_MAX: u64 = 64 << 40;

/// All directives of a name, in the order of the file.
pub(super) fn every<'t>(block: &'t [Directive], name: &str) -> Vec<&'t Directive> {
    let mut found = Vec::new();
    for directive in block {
        if directive.name == name {
            found.push(directive);
        }
        found.extend(every(directive.inner(), name));
    }
    found
}
