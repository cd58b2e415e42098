//! Checks of several settings together: settings that contradict, repeat or need each other.
//!
//! The checks run even if single settings were wrong. Those have their default then, and no
//! place in the file, so they take part in no comparison.

mod acme;
mod answers;
mod backends;
mod caches;
mod chosen_backends;
mod conditions;
mod crowds;
mod expressions;
mod fastcgi;
mod forward_auth;
mod listeners;
mod maps;
mod names;
mod places;
mod proxies;
mod routes;
mod served;
mod site_names;
mod sites;
mod tls;

use std::ops::Range;

use crate::diagnostic::Help;
use crate::model::{Config, Reach};
use crate::read::Reader;
use crate::setting::quoted_size;
pub(crate) use acme::{answers_in_http, answers_in_tls};
pub(crate) use backends::named_backends;
pub use listeners::{Addresses, collide, leads_back};
pub use tls::do_protocols_fit;

/// Records every contradiction in a configuration.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) {
    tls::check(&config.tls, reader);
    tls::check_protocols(config, reader);
    check_limits(config, reader);
    let reach = Reach::of(config);
    listeners::check(config, &reach, reader);
    sites::check(config, &reach, reader);
    site_names::check(config, &reach, reader);
    backends::check(config, &reach, reader);
    proxies::check(config, reader);
    fastcgi::check(config, reader);
    forward_auth::check(config, reader);
    caches::check(config, reader);
    maps::check(config, reader);
    chosen_backends::check(config, reader);
    acme::check(config, reader);
}

fn check_limits(config: &Config, reader: &mut Reader<'_>) {
    let limits = &config.limits;
    let memory = u64::try_from(limits.hot_memory_bytes).unwrap_or(u64::MAX);
    if memory > 0 && limits.hot_file_bytes > memory {
        let message = "`hot_file` must not be larger than all of `hot_memory`";
        let file = (reader.place("limits.hot_file"), memory);
        let memory = (reader.place("limits.hot_memory"), limits.hot_file_bytes);
        find_in_one(reader, message, [file, memory]);
    }
    if limits.target_bytes >= limits.head_bytes {
        let bytes = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        let message = "`target` must be smaller than `head`, of which it is a part";
        let target = (reader.place("limits.target"), bytes(limits.head_bytes / 2));
        let head = (reader.place("limits.head"), bytes(limits.target_bytes.saturating_mul(2)));
        find_in_one(reader, message, [target, head]);
    }
}

/// Records a mistake between two sizes at the first of them that is written, with a size that
/// would fit there.
fn find_in_one(
    reader: &mut Reader<'_>,
    message: &str,
    candidates: [(Option<Range<usize>>, u64); 2],
) {
    let written = candidates.into_iter().find_map(|(place, fits)| Some((place?, fits)));
    if let Some((place, fits)) = written {
        reader.report_at(&place, message.to_owned(), Help::write(quoted_size(fits)));
    }
}
