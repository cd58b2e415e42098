//! Routes that take paths out of a guarded one, and ask for less.

use super::at;
use crate::diagnostic::Diagnostic;
use crate::model::{Config, PLACES, Place, Route};

/// Names each guarded prefix of a site from which a regular expression, an exact path or a longer text takes paths with another guard:
/// that is nginx's order, and seldom what was meant.
pub(super) fn about_guards(config: &Config, index: usize, diagnostics: &mut Vec<Diagnostic>) {
    let routes = config.sites.get(index).map_or(&[][..], |site| &site.routes);
    let guarded: Vec<(usize, &Route, &str)> = routes
        .iter()
        .enumerate()
        .filter(|(_, route)| route.regex.is_none() && route.is_guarded() && !route.refuses_all())
        .filter_map(|(number, route)| match route.place()? {
            Place::Prefix(text) | Place::TextPrefix(text) => Some((number, route, text)),
            Place::Exact(_) => None,
        })
        .collect();
    let takers = routes.iter().enumerate().filter(|(_, it)| !it.refuses_all() && may_take(it));
    let mut said = 0;
    for (number, taker) in takers.take(PAIRS_MAX / guarded.len().max(1)) {
        let takes = |(_, outer, prefix): &&(usize, &Route, &str)| {
            takes_from(taker, outer, prefix) && !taker.has_guard_of(outer)
        };
        let Some((outer, route, _)) = guarded.iter().find(takes) else { continue };
        let line = setting_of(config, index, *outer).1;
        let message = format!(
            "this route takes paths from the one on line {line}, and does not ask what that asks of clients"
        );
        let help = match (taker.place(), route.first) {
            (None, false) => "write first = true there, or the same guard here",
            _ => "write the same guard here, if it is to hold",
        };
        diagnostics.push(at(config, &setting_of(config, index, number).0, &message, help));
        said += 1;
        if said >= SAID_MAX {
            return;
        }
    }
}

/// Names the first guarded route whose responses a proxy in front, which may be a cache, is not told to be for one client.
pub(super) fn about_marks(config: &Config, index: usize) -> Option<Diagnostic> {
    let routes = &config.sites.get(index)?.routes;
    let number =
        routes.iter().position(|it| it.is_guarded() && !it.mark_private && !it.refuses_all())?;
    let message = "a proxy in front of kettle may keep for others what one client was let in for";
    let help = "leave it if none there keeps responses; else remove it";
    Some(at(config, &format!("site.{index}.route.{number}.mark_private"), message, help))
}

/// True if what answers here is not said by whole segments alone.
fn may_take(route: &Route) -> bool {
    route.regex.is_some() || matches!(route.place(), Some(Place::Exact(_) | Place::TextPrefix(_)))
}

fn takes_from(taker: &Route, outer: &Route, prefix: &str) -> bool {
    match (taker.place(), &taker.regex) {
        // One that begins with another text is never asked there.
        (None, Some(regex)) => {
            let fixed = fixed_beginning(regex.as_str());
            !outer.first && (fixed.starts_with(prefix) || prefix.starts_with(&fixed))
        }
        (own, Some(_)) => own == outer.place(),
        (Some(own), None) => {
            own.text().len() > prefix.len() && outer.place().is_some_and(|it| it.has(own.text()))
        }
        (None, None) => false,
    }
}

/// Returns the text with which all paths begin that an expression fits; nothing if that is not plain.
fn fixed_beginning(regex: &str) -> String {
    let Some(rest) = regex.strip_prefix('^') else { return String::new() };
    let is_plain = |it: &char| it.is_ascii_alphanumeric() || "/-_".contains(*it);
    let mut text: String = rest.chars().take_while(is_plain).collect();
    // The last may be there once, often or not at all; and any part of two that stand beside each other.
    if rest.get(text.len()..).is_some_and(|behind| behind.starts_with(['?', '*', '{', '+'])) {
        text.pop();
    }
    if rest.contains('|') { String::new() } else { text }
}

/// Returns where a route says its place, and the line.
fn setting_of(config: &Config, site: usize, number: usize) -> (String, usize) {
    let trail = format!("site.{site}.route.{number}");
    let named = PLACES
        .iter()
        .map(|name| format!("{trail}.{name}"))
        .find(|setting| config.position_of(setting).is_written());
    let setting = named.unwrap_or(trail);
    let line = config.position_of(&setting).line;
    (setting, line)
}

/// Pairs that are compared: of more it is not said.
const PAIRS_MAX: usize = 1_000_000;
/// Routes of a site that are named.
const SAID_MAX: usize = 20;
