//! What no setting can say alone: settings that contradict, repeat or need each other.
//!
//! The checks run even if single settings were wrong. Those have their default then, and no
//! place in the file, so they take part in no comparison.

mod listeners;
mod sites;
mod tls;

use crate::model::Config;
use crate::read::Reader;

/// Records every contradiction in a configuration.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) {
    tls::check(&config.tls, reader);
    check_limits(config, reader);
    listeners::check(config, reader);
    sites::check(config, reader);
}

fn check_limits(config: &Config, reader: &mut Reader<'_>) {
    let limits = &config.limits;
    let memory = u64::try_from(limits.hot_memory_bytes).unwrap_or(u64::MAX);
    let place = reader.place("limits.hot_file").or(reader.place("limits.hot_memory"));
    if let Some(place) = place
        && memory > 0
        && limits.hot_file_bytes > memory
    {
        let message = "`hot_file` is larger than all of `hot_memory`".to_owned();
        reader.find_at(&place, message, None);
    }
    let place = reader.place("limits.target").or(reader.place("limits.head"));
    if let Some(place) = place
        && limits.target_bytes >= limits.head_bytes
    {
        let message = "`target` must be smaller than `head`, of which it is a part".to_owned();
        reader.find_at(&place, message, None);
    }
}
