//! Which small texts are compressed while they are asked for, where no compressed sibling is there.

use kettle_config::Coding;

use super::entry::Content;
use super::file_route::FileRoute;
use super::locate::Facts;
use super::precompressed::CodingPreference;

/// The coding that a file is to be compressed by; none if it is no text, large, tiny, or compressed already.
pub fn coding_for(
    route: &FileRoute,
    preference: CodingPreference,
    facts: &Facts,
    content: &Content,
) -> Option<Coding> {
    let coding = preference.among(&route.compression.codings).codings().next()?;
    if preference.is_on_disk() {
        return None;
    }
    let bytes_min = route.compression.bytes_min;
    let is_small = matches!(content, Content::Memory(bytes) if bytes.len() as u64 >= bytes_min);
    let name = facts.path.rsplit('/').next().unwrap_or(&facts.path);
    (is_small && facts.coding.is_none() && route.compression.is_text(&route.types.of(name)))
        .then_some(coding)
}
