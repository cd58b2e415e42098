//! The sessions that a server resumes: the column that tables of sites and their session reuse are about.

use std::time::Duration;

use kettle_tls::Resumption;

use crate::finding::Finding;
use crate::host::facts::{Facts, Second, VersionFacts};
use crate::host::failure::Failure;
use crate::render;

/// By ticket, by session ID, for how long.
pub(super) fn resumption(facts: &Facts) -> Finding {
    const NAME: &str = "resumption";
    let new = &facts.tls13;
    let old = &facts.tls12;
    let message = summary(facts).unwrap_or_else(|| "none".to_owned());
    let mut table = Vec::new();
    if new.is_spoken() {
        table.push(line("TLS 1.3 by ticket", new.by_ticket.as_ref(), Resumption::Ticket, new));
    }
    if old.is_spoken() {
        table.push(line("TLS 1.2 by ticket", old.by_ticket.as_ref(), Resumption::Ticket, old));
        table.push(line("TLS 1.2 by session ID", old.by_id.as_ref(), Resumption::SessionId, old));
    }
    match advice(new, old) {
        [] => Finding::good(NAME, message).table(table),
        steps => steps
            .iter()
            .fold(Finding::warning(NAME, message).table(table), |finding, step| finding.fix(*step)),
    }
}

/// In a few words, behind "resumes sessions".
pub(in crate::host) fn summary(facts: &Facts) -> Option<String> {
    let new = &facts.tls13;
    let old = &facts.tls12;
    let by = match (new.resumes_by_ticket(), old.resumes_by_ticket(), old.resumes_by_id()) {
        (false, false, false) => return None,
        (true, _, _) if !old.is_spoken() => "by ticket",
        (true, true, true) => "by ticket, in TLS 1.2 by session ID too",
        (true, true, false) => "by ticket",
        (true, false, true) => "in TLS 1.3 by ticket, in TLS 1.2 by session ID",
        (true, false, false) => "in TLS 1.3 by ticket, in TLS 1.2 not at all",
        (false, true, true) => "by ticket and by session ID",
        (false, true, false) => "by ticket",
        (false, false, true) => "by session ID only",
    };
    let is_new_left_out = new.is_spoken() && !new.resumes_by_ticket();
    Some(format!("{by}{}", if is_new_left_out { ", in TLS 1.3 not at all" } else { "" }))
}

fn line(
    what: &str,
    second: Option<&Result<Second, Failure>>,
    wanted: Resumption,
    version: &VersionFacts,
) -> String {
    let said = match second {
        Some(Ok(second)) if second.resumed == wanted => {
            format!("✓  {}", tickets(version, wanted)).trim_end().to_owned()
        }
        Some(Ok(_)) if wanted == Resumption::Ticket && version.tickets > 0 => {
            format!("✗  gives {}, takes none", count(version))
        }
        Some(Ok(_)) => "✗".to_owned(),
        Some(Err(failure)) => format!("?  {failure}"),
        None => "?".to_owned(),
    };
    render::shorten(&format!("{what:<21}  {said}"), render::TABLE_COLUMNS_MAX)
}

fn tickets(version: &VersionFacts, wanted: Resumption) -> String {
    if wanted == Resumption::SessionId {
        return String::new();
    }
    match version.ticket_lifetime {
        Duration::ZERO => count(version),
        lifetime => format!("{}, good for {}", count(version), span(lifetime)),
    }
}

fn count(version: &VersionFacts) -> String {
    plural(version.tickets.into(), "ticket")
}

fn advice(new: &VersionFacts, old: &VersionFacts) -> &'static [&'static str] {
    let lacks = |version: &VersionFacts, resumes: bool| version.is_spoken() && !resumes;
    let gives_in_vain =
        |version: &VersionFacts| version.tickets > 0 && !version.resumes_by_ticket();
    if gives_in_vain(new) || gives_in_vain(old) {
        return &[
            "tickets are given and not taken back: several machines behind this address need the same ticket keys",
        ];
    }
    let old_resumes = old.resumes_by_ticket() || old.resumes_by_id();
    match (lacks(new, new.resumes_by_ticket()), lacks(old, old_resumes)) {
        (false, false) if lacks(old, old.resumes_by_ticket()) => &[
            "TLS 1.2 by session ID alone: each machine behind this address has its own memory of them; turn on tickets",
        ],
        (false, false) => &[],
        (false, true) => &["turn on tickets for TLS 1.2: there each visit costs a full handshake"],
        (true, _) => &["turn on tickets: each visit costs a full handshake"],
    }
}

/// As people say it: a second less than twelve hours is twelve hours.
fn span(time: Duration) -> String {
    let seconds = match time.as_secs() {
        long @ 600.. => long.saturating_add(30) / 60 * 60,
        short => short,
    };
    match seconds {
        _ if seconds % DAY == 0 => plural(seconds / DAY, "day"),
        _ if seconds % HOUR == 0 => plural(seconds / HOUR, "hour"),
        _ if seconds % 60 == 0 => plural(seconds / 60, "minute"),
        _ => plural(seconds, "second"),
    }
}

fn plural(count: u64, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
