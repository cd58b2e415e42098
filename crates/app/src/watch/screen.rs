//! One screen of `kettle ctl status --watch`: what happened between two looks at the counters, as rates, in 80 columns.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use kettle_supervisor::TxPathOverride;
use kettle_supervisor::admin::status::{Counts, Status};

/// Shows what the server did between `before` and `now`. Another server under the same socket begins anew.
pub(super) fn screen(before: &Status, now: &Status, passed: Duration) -> String {
    let nothing = Counts::default();
    let is_same = before.process == now.process && before.uptime_seconds <= now.uptime_seconds;
    let rates = Rates {
        before: if is_same { &before.total } else { &nothing },
        now: &now.total,
        seconds: if is_same { passed.as_secs_f64() } else { now.uptime_seconds.max(1) as f64 },
    };
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = rates.write(&mut out, now);
    out
}

struct Rates<'c> {
    before: &'c Counts,
    now: &'c Counts,
    seconds: f64,
}

type Words = BTreeMap<String, u64>;

impl Rates<'_> {
    fn write(&self, out: &mut String, status: &Status) -> std::fmt::Result {
        let Status { version, process, uptime_seconds, workers, .. } = status;
        let hours = uptime_seconds / 3600;
        let minutes = uptime_seconds / 60 % 60;
        let seconds = uptime_seconds % 60;
        let workers = workers.len();
        let switch = if status.tx_path == TxPathOverride::User { ", switch: user" } else { "" };
        writeln!(
            out,
            "kettle {version}, process {process}, up {hours}:{minutes:02}:{seconds:02}, workers {workers}{switch}"
        )?;
        write!(out, "{}", status.certificates)?;
        writeln!(out)?;
        self.write_connections(out)?;
        self.write_responses(out)?;
        self.write_kernel(out)?;
        self.write_tunnels(out, status)
    }

    fn write_connections(&self, out: &mut String) -> std::fmt::Result {
        let accepted = self.rate(|it| it.connections);
        write!(out, "connections  {} open, {accepted}/s accepted", self.now.connections_open)?;
        self.write_reasons(out, ", rejected: ", |it| &it.connections_rejected)?;
        writeln!(out)?;
        let done = self.rate(|it| it.handshakes.values().sum());
        let failed = self.rate(|it| it.handshakes_failed.values().sum());
        writeln!(out, "handshakes   {done}/s, {failed}/s failed")?;
        self.write_list(out, "done", |it| &it.handshakes)?;
        self.write_list(out, "failed", |it| &it.handshakes_failed)
    }

    fn write_responses(&self, out: &mut String) -> std::fmt::Result {
        let all = self.count(|it| it.responses.values().sum());
        let bytes = self.count(|it| it.response_bytes.values().sum());
        writeln!(out, "responses    {}/s, {}/s", self.per_second(all), self.bytes(bytes))?;
        self.write_list(out, "status", |it| &it.statuses)?;
        writeln!(
            out,
            "  {:<17}{:>12}{:>8}{:>16}{:>8}",
            "path", "responses/s", "share", "bytes/s", "share"
        )?;
        for path in self.now.responses.keys() {
            let responses = self.count(|it| value(&it.responses, path));
            let sent = self.count(|it| value(&it.response_bytes, path));
            writeln!(
                out,
                "  {path:<17}{:>12}{:>8}{:>16}{:>8}",
                self.per_second(responses),
                share(responses, all),
                self.bytes(sent),
                share(sent, bytes),
            )?;
        }
        self.write_list(out, "not as preferred", |it| &it.not_preferred)?;
        match self.count(|it| it.responses_truncated) {
            0 => Ok(()),
            ended => writeln!(out, "  ended early       {}/s", self.per_second(ended)),
        }
    }

    fn write_kernel(&self, out: &mut String) -> std::fmt::Result {
        write!(out, "kernel       {}/s connections moved in", self.rate(|it| it.switches))?;
        self.write_reasons(out, ", refused: ", |it| &it.refusals)?;
        writeln!(out)
    }

    fn write_tunnels(&self, out: &mut String, status: &Status) -> std::fmt::Result {
        if self.now.tunnels > 0 {
            let opened = self.rate(|it| it.tunnels);
            writeln!(out, "tunnels      {} open, {opened}/s opened", self.now.tunnels_open)?;
            self.write_list(out, "ended", |it| &it.tunnels_ended)?;
        }
        for backend in &status.backends.0 {
            for server in &backend.servers {
                let name = format!("{}/{}", backend.name, server.name);
                let health = server.health.as_str();
                writeln!(
                    out,
                    "backend      {name:<30} {health:<10} {} connections",
                    server.connections
                )?;
            }
            if backend.waiting > 0 {
                writeln!(out, "  {} wait for a server of {}", backend.waiting, backend.name)?;
            }
        }
        Ok(())
    }

    /// Writes the counts under each word, in lines of their own that fit 80 columns; nothing if nothing was counted.
    fn write_list(
        &self,
        out: &mut String,
        title: &str,
        of: impl Fn(&Counts) -> &Words,
    ) -> std::fmt::Result {
        let mut line = String::new();
        let mut title = title;
        for item in self.items(of) {
            if !line.is_empty() && line.len() + ", ".len() + item.len() > LISTED_COLUMNS {
                writeln!(out, "  {title:<16}  {line}")?;
                (line, title) = (String::new(), "");
            }
            let comma = if line.is_empty() { "" } else { ", " };
            write!(line, "{comma}{item}")?;
        }
        if line.is_empty() { Ok(()) } else { writeln!(out, "  {title:<16}  {line}") }
    }

    /// The same behind a prefix, on the line that is there.
    fn write_reasons(
        &self,
        out: &mut String,
        prefix: &str,
        of: impl Fn(&Counts) -> &Words,
    ) -> std::fmt::Result {
        let items: Vec<String> = self.items(of).collect();
        if items.is_empty() { Ok(()) } else { write!(out, "{prefix}{}", items.join(", ")) }
    }

    fn items(&self, of: impl Fn(&Counts) -> &Words) -> impl Iterator<Item = String> {
        let before = of(self.before);
        let now = of(self.now);
        now.iter().filter_map(|(word, count)| match count.saturating_sub(value(before, word)) {
            0 => None,
            counted => Some(format!("{word} {}/s", self.per_second(counted))),
        })
    }

    fn count(&self, of: impl Fn(&Counts) -> u64) -> u64 {
        of(self.now).saturating_sub(of(self.before))
    }

    fn rate(&self, of: impl Fn(&Counts) -> u64) -> String {
        self.per_second(self.count(of))
    }

    /// Whole from ten up; less than that has a decimal, so that one in a while is not none.
    fn per_second(&self, count: u64) -> String {
        let rate = count as f64 / self.seconds;
        if count == 0 || rate >= 9.95 { format!("{rate:.0}") } else { format!("{rate:.1}") }
    }

    fn bytes(&self, count: u64) -> String {
        let mut rate = count as f64 / self.seconds;
        let mut unit = "B";
        for larger in ["KiB", "MiB", "GiB", "TiB"] {
            if rate < 1000.0 {
                break;
            }
            (rate, unit) = (rate / 1024.0, larger);
        }
        if unit == "B" { format!("{rate:.0} B") } else { format!("{rate:.1} {unit}") }
    }
}

fn value(words: &Words, word: &str) -> u64 {
    words.get(word).copied().unwrap_or_default()
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.0} %", part as f64 * 100.0 / whole as f64) }
}

/// The columns left of 80 beside the title.
const LISTED_COLUMNS: usize = 58;

#[cfg(test)]
mod tests;
