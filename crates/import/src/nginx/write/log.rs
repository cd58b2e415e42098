//! The targets of nginx's access logs: the log of the process, and those of sites and routes.

use kettle_config::{Origin, quoted};

use super::Writer;
use super::global::every;
use super::route::{Setting, spoken};
use crate::nginx::measure;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;

/// The knowledge on logs so far.
#[derive(Default)]
pub(super) struct Logs {
    /// The target of that of the process, as it is written.
    common: Option<String>,
    /// The target of that of the site at hand.
    site: Option<String>,
    /// In which form all of them are.
    format: &'static str,
    /// The directives that were carried over.
    carried: Vec<Origin>,
}

impl Writer<'_> {
    /// The log of `http`, or else the first of a server, is that of the process.
    pub(super) fn common_log(&mut self, https: &[&Directive]) {
        let mut outermost = https.iter().flat_map(|http| http.inner());
        let outermost = outermost.find(|it| it.name == "access_log");
        let mut all = https.iter().flat_map(|http| every(http.inner(), "access_log"));
        let Some(log) = outermost.or_else(|| all.next()) else {
            let message = "nginx logs requests where it was built to, if nothing is said";
            let origin = https.first().map_or_else(Origin::default, |http| http.origin.clone());
            if !https.is_empty() {
                self.output.warn(&origin, message, "write access = \"…\" below [log]");
            }
            return;
        };
        let origin = Some(&log.origin);
        let target = self.log_target(log);
        self.output.text.set("access", &target, origin);
        if target != quoted("off") {
            self.logs.format = format_of(log);
            self.output.text.set("format", quoted(self.logs.format), origin);
            let buffer = log.words.iter().find_map(|word| word.strip_prefix("buffer="));
            if let Some(bytes) = buffer.and_then(measure::bytes) {
                self.output.text.set("buffer", bytes.min(BUFFER_BYTES_MAX), origin);
            }
        } else if let Some(first) = self.first_format(https) {
            self.logs.format = first;
            self.output.text.set("format", quoted(first), origin);
        }
        self.tell_of_options(log);
        self.logs.common = Some(target);
        self.logs.carried.push(log.origin.clone());
        for format in https.iter().flat_map(|http| every(http.inner(), "log_format")) {
            let message = format!("`log_format {}` is not carried over", format.word(0));
            let help =
                "`format` below [log] is json, combined or short; json has all that kettle knows";
            self.output.warn(&format.origin, message, help);
        }
    }

    /// Returns where the lines of a site go, if not to the log of the process.
    pub(super) fn site_log(&mut self, scope: &Scope<'_>) -> Option<Setting> {
        let own = self.own_log(scope);
        self.logs.site = own.as_ref().map(|(_, target, _)| target.clone());
        own.filter(|(_, target, _)| Some(target) != self.logs.common.as_ref())
    }

    /// Returns where the lines of a route go, if not where those of its site do.
    pub(super) fn route_log(&mut self, scope: &Scope<'_>) -> Option<Setting> {
        let own = self.own_log(scope);
        own.filter(|(_, target, _)| Some(target) != self.logs.site.as_ref())
    }

    fn own_log(&mut self, scope: &Scope<'_>) -> Option<Setting> {
        let log = scope.find("access_log")?;
        let target = self.log_target(log);
        self.tell_of_options(log);
        if target != quoted("off") && format_of(log) != self.logs.format {
            let message = format!("the format of `{}` is not carried over", spoken(log));
            self.output.warn(&log.origin, message, "`format` below [log] holds for all logs");
        }
        self.logs.carried.push(log.origin.clone());
        Some(("access_log", target, log.origin.clone()))
    }

    /// Says which logs were not carried over, at the end.
    pub(super) fn tell_of_other_logs(&mut self, https: &[&Directive], streams: &[&Directive]) {
        for log in https.iter().flat_map(|http| every(http.inner(), "access_log")) {
            let is_common = Some(self.log_target(log)) == self.logs.common;
            if !is_common && !self.logs.carried.contains(&log.origin) {
                self.tell_of(log, "each site and each route has one log");
            }
        }
        for log in streams.iter().flat_map(|stream| every(stream.inner(), "access_log")) {
            self.tell_of(log, "tunnels are logged where [log] says");
        }
    }

    /// Returns where a log goes, as it is written in a kettle.toml.
    fn log_target(&mut self, log: &Directive) -> String {
        match log.word(0) {
            "off" => quoted("off"),
            path if path.starts_with("syslog:") || path.contains('$') => {
                let help = "the log goes to standard output, and from there to the journal";
                self.tell_of_change(log, help);
                quoted("stdout")
            }
            "/dev/stdout" => quoted("stdout"),
            "/dev/stderr" => quoted("stderr"),
            path => quoted(&self.below_prefix(path, &log.origin).display().to_string()),
        }
    }

    fn tell_of_options(&mut self, log: &Directive) {
        for option in log.words.iter().skip(1).filter(|word| word.contains('=')) {
            if !option.starts_with("flush=") && !option.starts_with("buffer=") {
                let message = format!("`{option}` is not carried over");
                self.output.warn(&log.origin, message, "all requests are logged, uncompressed");
            }
        }
    }

    /// The form of the first log that is one, where that of the process is off.
    fn first_format(&self, https: &[&Directive]) -> Option<&'static str> {
        let mut all = https.iter().flat_map(|http| every(http.inner(), "access_log"));
        all.find(|log| log.word(0) != "off").map(format_of)
    }
}

fn format_of(log: &Directive) -> &'static str {
    let format = log.words.get(1).filter(|word| !word.contains('='));
    match format.map(String::as_str) {
        None | Some("combined") => "combined",
        Some(_) => "json",
    }
}

/// The largest buffer of kettle.
const BUFFER_BYTES_MAX: u64 = 16 * 1024 * 1024;
