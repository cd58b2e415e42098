//! The differences of kettle from nginx: one line for each, whose first word says in which direction.

use std::collections::BTreeSet;

use super::Seen;
use super::answer::Answer;
use super::behind::Asked;
use super::format::Ask;

/// The differences of what is seen of a request, and nothing where both do the same.
pub(super) fn differences(ask: &Ask, nginx: &Seen, kettle: &Seen) -> Vec<String> {
    let mut found = Vec::new();
    let theirs = &nginx.answer;
    let ours = &kettle.answer;
    if !kettle.asked.is_empty() && nginx.asked.is_empty() {
        found.push(format!("looser asked: nobody, here {}", line(&kettle.asked[0])));
    }
    if theirs.status != ours.status {
        let direction = match (is_refused(theirs), is_refused(ours)) {
            (true, false) => "looser",
            (false, true) => "stricter",
            _ => "other",
        };
        found.push(format!("{direction} status: {}, here {}", theirs.status, ours.status));
        return found;
    }
    if theirs.is_cut != ours.is_cut {
        found.push(format!("other end of the body: {}, here {}", cut(theirs), cut(ours)));
    }
    let is_page = is_page_of_nginx(ask, theirs);
    if is_page && !is_page_of_kettle(ours) {
        found.push(format!("other body: nginx's own, here {}", shown(&ours.text())));
    }
    let [their_body, our_body] = [theirs, ours].map(|it| body(ask, it));
    if !is_page && their_body != our_body {
        found.push(format!("other body: {}, here {}", shown(&their_body), shown(&our_body)));
    }
    headers(ask, is_page, theirs, ours, &mut found);
    if nginx.asked.len() != kettle.asked.len() && found.is_empty() {
        let [theirs, ours] = [nginx, kettle].map(|it| it.asked.len());
        found.push(format!("other number of requests behind: {theirs}, here {ours}"));
    }
    for (theirs, ours) in nginx.asked.iter().zip(&kettle.asked) {
        behind(ask, theirs, ours, &mut found);
    }
    found
}

fn is_refused(answer: &Answer) -> bool {
    answer.status == "closed" || answer.status.as_str() >= "400"
}

/// True if nginx made the text itself: kettle's own has another form, and both say only the status.
fn is_page_of_nginx(ask: &Ask, answer: &Answer) -> bool {
    let is_plain = answer.header("content-type").as_deref() == Some("text/html");
    let has_none = ask.method == "HEAD" && answer.status.as_str() >= "300" && is_plain;
    // It has no text for a status that it does not know.
    let is_unknown = answer.body.is_empty() && answer.status.as_str() >= "400" && !is_plain;
    has_none || is_unknown || answer.text().contains("<center>nginx")
}

fn is_page_of_kettle(answer: &Answer) -> bool {
    let begins = |status: &str| answer.text().contains(&format!("<title>{status} "));
    answer.body.is_empty() || begins(&answer.status)
}

fn cut(answer: &Answer) -> &'static str {
    if answer.is_cut { "cut" } else { "whole" }
}

/// The part of a body that is compared: all of it, or only the targets of its links.
fn body(ask: &Ask, answer: &Answer) -> String {
    let text = answer.text();
    if ask.has("links") {
        let links = text.split("href=\"").skip(1).filter_map(|it| it.split('"').next());
        let links = links.map(|it| it.trim_start_matches("./"));
        // Links that lead up, or sort, are of each server's own kind.
        let is_entry = |it: &&str| !it.is_empty() && !it.starts_with("..") && !it.starts_with('?');
        let links: BTreeSet<&str> = links.filter(is_entry).collect();
        return links.into_iter().map(|it| format!("{it}\n")).collect();
    }
    if answer.header("content-type").is_some_and(|it| it.starts_with("multipart/byteranges")) {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("--"));
        let mut lines: Vec<String> =
            lines.map(|line| line.replace("Content-Type", "content-type")).collect();
        lines.sort();
        return lines.concat().to_ascii_lowercase();
    }
    text
}

fn headers(ask: &Ask, is_page: bool, theirs: &Answer, ours: &Answer, found: &mut Vec<String>) {
    let names = theirs.headers.iter().chain(&ours.headers).map(|(name, _)| name.as_str());
    let names: BTreeSet<&str> = names.filter(|name| !IGNORED.contains(name)).collect();
    // A list of a folder is a page of its own.
    let names = names.into_iter().filter(|name| !(ask.has("links") && OF_LISTS.contains(name)));
    for name in names {
        let [theirs, ours] = [theirs, ours].map(|it| value(ask, name, it));
        let is_helpful = ours_only(name, is_page, theirs.as_deref(), ours.as_deref());
        if theirs == ours || is_helpful || is_harmless(name, &theirs, &ours) {
            continue;
        }
        let direction = match (&theirs, &ours) {
            (Some(_), None) if GUARDING.contains(&name) => "looser",
            (None, Some(value)) if name == "cache-control" && forbids(value) => "stricter",
            _ => "other",
        };
        let [theirs, ours] = [theirs, ours].map(|it| it.as_deref().map_or("none".into(), shown));
        found.push(format!("{direction} {name}: {theirs}, here {ours}"));
    }
}

/// A header as it is compared.
fn value(ask: &Ask, name: &str, answer: &Answer) -> Option<String> {
    let value = answer.header(name)?;
    Some(match name {
        // Each has a form of its own.
        "etag" | "expires" => "there".to_owned(),
        "location" => target(ask, &value),
        "content-type" if value.starts_with("multipart") => "multipart".to_owned(),
        "content-type" => value.replace("; ", ";").to_ascii_lowercase(),
        "vary" | "cache-control" => {
            let mut words: Vec<String> =
                value.split(',').map(|it| it.trim().to_ascii_lowercase()).collect();
            words.sort();
            words.join(", ")
        }
        "www-authenticate" => value.replace(", charset=\"UTF-8\"", ""),
        _ => value,
    })
}

/// Where a redirect leads: a path is one of the same server.
fn target(ask: &Ask, location: &str) -> String {
    let Ask { scheme, host, .. } = ask;
    let host = ask.header("host").unwrap_or(host);
    let whole = match location {
        it if it.starts_with("//") => format!("{scheme}:{it}"),
        it if it.starts_with('/') => format!("{scheme}://{host}{it}"),
        it => it.to_owned(),
    };
    let authority = whole.find("://").map_or(0, |at| at + 3);
    let path = whole[authority..].find(['/', '?']).map_or(whole.len(), |at| authority + at);
    whole[..path].to_ascii_lowercase() + &decoded(&whole[path..])
}

/// A path without the codes that mean the letter itself: nginx decodes more than kettle does, and clients see the same.
fn decoded(path: &str) -> String {
    let mut letters = path.as_bytes().iter();
    let mut decoded = Vec::new();
    while let Some(&letter) = letters.next() {
        let code = || std::str::from_utf8(letters.as_slice().get(..2)?).ok();
        let coded = code().and_then(|code| u8::from_str_radix(code, 16).ok());
        match coded.filter(|it| letter == b'%' && !b"%/?#&=+;".contains(it)) {
            Some(coded) => {
                letters.nth(1);
                decoded.push(coded);
            }
            None => decoded.push(letter),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// True if kettle's own page says what nginx's does not, or an error what would help.
fn ours_only(name: &str, is_page: bool, theirs: Option<&str>, ours: Option<&str>) -> bool {
    match name {
        "content-type" => is_page,
        "cache-control" => is_page && theirs.is_none() && ours == Some("no-store"),
        "allow" | "retry-after" => theirs.is_none(),
        _ => false,
    }
}

/// True if a cache that stands before it is told more than it needs to know.
fn is_harmless(name: &str, theirs: &Option<String>, ours: &Option<String>) -> bool {
    let more = |words: &str| format!("accept-encoding, {words}");
    name == "vary"
        && match (theirs, ours) {
            (None, Some(ours)) => ours == "accept-encoding",
            (Some(theirs), Some(ours)) => *ours == more(theirs),
            _ => false,
        }
}

fn forbids(value: &str) -> bool {
    ["no-store", "no-cache", "private"].iter().any(|word| value.contains(word))
}

fn line(asked: &Asked) -> String {
    format!("{} {} at {}", asked.method, asked.target, asked.port)
}

/// Compares the requests that a backend got.
fn behind(ask: &Ask, theirs: &Asked, ours: &Asked, found: &mut Vec<String>) {
    let [their_line, our_line] = [theirs, ours].map(line);
    if their_line != our_line {
        found.push(format!("other asked: {their_line}, here {our_line}"));
    }
    if theirs.body != ours.body {
        let [theirs, ours] = [theirs, ours].map(|it| shown(&String::from_utf8_lossy(&it.body)));
        found.push(format!("other body asked with: {theirs}, here {ours}"));
    }
    let names = theirs.headers.iter().chain(&ours.headers).map(|(name, _)| name.as_str());
    let names: BTreeSet<&str> = names.filter(|name| !IGNORED_BEHIND.contains(name)).collect();
    for name in names {
        let value = |asked: &Asked| {
            let found = asked.headers.iter().filter(|(it, _)| it == name);
            let values: Vec<&str> = found.map(|(_, value)| value.as_str()).collect();
            (!values.is_empty()).then(|| values.join(", "))
        };
        let [theirs, ours] = [theirs, ours].map(value);
        // Of its own accord kettle says who asks where nginx says nothing.
        let is_own = theirs.is_none() && name.starts_with("x-forwarded-");
        if theirs == ours || is_own && ours.as_deref() != ask.header(name) {
            continue;
        }
        let is_clients = ours.is_some() && ours.as_deref() == ask.header(name);
        let direction = if is_clients { "looser" } else { "other" };
        let [theirs, ours] = [theirs, ours].map(|it| it.as_deref().map_or("none".into(), shown));
        found.push(format!("{direction} asked with {name}: {theirs}, here {ours}"));
    }
}

/// A text on one line, cut where it gets long.
pub(super) fn shown(text: &str) -> String {
    let short: String = text.chars().take(SHOWN_MAX).collect();
    let end = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{end}")
}

const SHOWN_MAX: usize = 120;

/// Headers that each server has its own way with, without a meaning for the answer.
const IGNORED: [&str; 8] = [
    "date",
    "server",
    "connection",
    "keep-alive",
    "content-length",
    "transfer-encoding",
    "accept-ranges",
    "via",
];

const OF_LISTS: [&str; 4] =
    ["content-security-policy", "content-type", "vary", "x-content-type-options"];

/// Headers of the connection to a server, and those by which kettle always names a client.
const IGNORED_BEHIND: [&str; 8] = [
    "connection",
    "keep-alive",
    "te",
    "via",
    "forwarded",
    "expect",
    "content-length",
    "transfer-encoding",
];

/// Headers without which a browser is allowed more.
const GUARDING: [&str; 8] = [
    "cache-control",
    "content-disposition",
    "content-security-policy",
    "permissions-policy",
    "referrer-policy",
    "strict-transport-security",
    "x-content-type-options",
    "x-frame-options",
];
