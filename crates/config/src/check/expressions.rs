//! Regular expressions: all of a site are not too large together, nor are all of the maps, wherever they stand.

use crate::diagnostic::Help;
use crate::model::{Condition, Expression, Expressions, Map, Redirect, Rewrite, Site};
use crate::read::Reader;

/// An expression, and the setting that it stands in.
type Written<'e> = (String, &'e Expression);

/// Records the first expression of a site that is too many.
pub(super) fn check_site(index: usize, site: &Site, reader: &mut Reader<'_>) {
    let mut all: Vec<Written<'_>> = Vec::new();
    for (number, before) in site.before.iter().enumerate() {
        let trail = format!("site.{index}.before.{number}");
        add(&mut all, &trail, &before.regex, &before.when);
        add_rules(&mut all, &trail, &before.redirects, &before.rewrites);
    }
    for (number, route) in site.routes.iter().enumerate() {
        let trail = format!("site.{index}.route.{number}");
        add(&mut all, &trail, &route.regex, &route.when);
        add_rules(&mut all, &trail, &route.redirects, &route.rewrites);
    }
    refuse(&all, "this site", reader);
}

/// Records the first expression of all maps that is too many.
pub(super) fn check_maps(maps: &[Map], reader: &mut Reader<'_>) {
    let mut all: Vec<Written<'_>> = Vec::new();
    for (number, map) in maps.iter().enumerate() {
        let setting = |it: &Expression| format!("map.{number}.regex.{}", it.as_str());
        all.extend(map.regex.iter().map(|(expression, _)| (setting(expression), expression)));
    }
    refuse(&all, "all maps", reader);
}

fn add<'e>(
    all: &mut Vec<Written<'e>>,
    trail: &str,
    own: &'e Option<Expression>,
    when: &'e [Condition],
) {
    all.extend(own.iter().map(|it| (format!("{trail}.regex"), it)));
    let when = when.iter().enumerate();
    all.extend(
        when.filter_map(|(at, it)| Some((format!("{trail}.when.{at}.regex"), it.regex.as_ref()?))),
    );
}

fn add_rules<'e>(
    all: &mut Vec<Written<'e>>,
    trail: &str,
    redirects: &'e [Redirect],
    rewrites: &'e [Rewrite],
) {
    let redirects = redirects.iter().map(|it| &it.regex).enumerate();
    let rewrites = rewrites.iter().map(|it| &it.regex).enumerate();
    let rules = redirects.map(|it| ("redirect", it)).chain(rewrites.map(|it| ("rewrite", it)));
    all.extend(rules.filter_map(|(setting, (at, regex))| {
        Some((format!("{trail}.{setting}.{at}.regex"), regex.as_ref()?))
    }));
}

fn refuse(all: &[Written<'_>], whose: &str, reader: &mut Reader<'_>) {
    let is_too_large = |count: usize| {
        let first = all.iter().take(count);
        Expressions::new(first.map(|(_, expression)| *expression)).is_err()
    };
    if !is_too_large(all.len()) {
        return;
    }
    let mut fits = 0;
    let mut too_many = all.len();
    while too_many - fits > 1 {
        let middle = fits.midpoint(too_many);
        match is_too_large(middle) {
            true => too_many = middle,
            false => fits = middle,
        }
    }
    let last = all.get(fits).and_then(|(setting, _)| reader.place(setting));
    if let Some(place) = last {
        let message = format!(
            "the regular expressions of {whose} take more than 1 MiB together: this is the one too many"
        );
        reader.report_at(&place, message, Help::act("write fewer, or shorter ones"));
    }
}
