//! The effect of a ClientHello in pieces on a server.

use crate::finding::Finding;
use crate::host::facts::{Facts, HelloTry};
use crate::render;

/// Each way to send it that is not taken, with what happened.
pub(super) fn hello(facts: &Facts) -> Option<Finding> {
    const NAME: &str = "split hello";
    let tries = &facts.hellos;
    let failed: Vec<&HelloTry> = tries.iter().filter(|one| one.taken.is_err()).collect();
    let bytes: Vec<usize> = [false, true]
        .into_iter()
        .filter_map(|is_hybrid| {
            let mut tries = tries.iter().filter(|one| one.is_hybrid == is_hybrid);
            tries.find(|one| one.hello_bytes > 0 && one.way == WHOLE).map(|one| one.hello_bytes)
        })
        .collect();
    let bytes: Vec<_> = bytes.iter().map(ToString::to_string).collect();
    let hellos = format!("of {} bytes", bytes.join(" and "));
    if failed.is_empty() {
        let message = format!(
            "taken in all {} ways: hellos {hellos}, whole, split after bytes 5, 6, half and all but one, in two records, \
             byte by byte",
            tries.len()
        );
        return (!tries.is_empty()).then(|| Finding::good(NAME, message));
    }
    let message = format!("{} of {} ways to send a hello fail", failed.len(), tries.len());
    let table = tries.iter().map(line).collect();
    Some(steps(&failed, Finding::bad(NAME, message).table(table)))
}

fn line(one: &HelloTry) -> String {
    let kind = if one.is_hybrid { "hybrid, " } else { "" };
    let outcome = match &one.taken {
        Ok(()) => "ok".to_owned(),
        Err(failure) => failure.to_string(),
    };
    let line = format!("{:<36}{outcome}", format!("{kind}{}", one.way));
    render::shorten(&line, render::TABLE_COLUMNS_MAX)
}

fn steps(failed: &[&HelloTry], finding: Finding) -> Finding {
    let is_records = |one: &&HelloTry| one.way == RECORDS;
    let is_split = |one: &&HelloTry| one.way != RECORDS && one.way != WHOLE;
    let is_long = |one: &&HelloTry| one.is_hybrid && one.way == WHOLE;
    let mut finding = finding;
    if failed.iter().any(is_split) || failed.iter().any(is_long) {
        finding = finding.fix(
            "it breaks when the hello comes in more than one segment: a middlebox or an old terminator reads only the \
             first. Post-quantum hellos always do (haproxy#3148)",
        );
    }
    if failed.iter().any(is_records) {
        finding = finding.fix(
            "it breaks when the hello is in two TLS records, which RFC 8446 §5.1 allows: whatever routes by SNI there \
             should put records together",
        );
    }
    finding
}

const WHOLE: &str = "sent whole";
const RECORDS: &str = "in two TLS records";
