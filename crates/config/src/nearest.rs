//! Guesses which known word a mistyped one was meant to be. Words of other servers are in `foreign`.

use strsim::osa_distance;

/// The longest word worth comparing; longer ones resemble no setting.
const COMPARED_CHARACTERS_MAX: usize = 64;

/// The known word that is spelt nearly as `written`.
pub fn closest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    let written = plain(written);
    let characters = written.chars().count();
    if characters > COMPARED_CHARACTERS_MAX {
        return None;
    }
    let with_distance = known.iter().map(|word| (osa_distance(&written, &plain(word)), *word));
    let (distance, word) = with_distance.min_by_key(|(distance, _)| *distance)?;
    let allowed = characters.max(word.len()).div_ceil(3).min(3);
    (distance <= allowed && distance < characters).then_some(word)
}

/// Case, and `-` in place of `_`, never make a different word.
pub(crate) fn plain(written: &str) -> String {
    written.trim().to_lowercase().replace(['-', ' '], "_")
}

#[cfg(test)]
mod tests;
