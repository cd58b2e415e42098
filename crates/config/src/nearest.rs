//! Guesses which known word a mistyped one was meant to be. Words of other servers are in `foreign`.

use crate::foreign::plain;

/// The longest word worth comparing; longer ones resemble no setting.
const COMPARED_CHARACTERS_MAX: usize = 64;

/// The known word that is spelt nearly as `written`.
pub fn closest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    let written = plain(written);
    let characters = written.chars().count();
    if characters > COMPARED_CHARACTERS_MAX {
        return None;
    }
    let with_distance = known.iter().map(|word| (distance(&written, &plain(word)), *word));
    let (distance, word) = with_distance.min_by_key(|(distance, _)| *distance)?;
    let allowed = characters.max(word.len()).div_ceil(3).min(3);
    (distance <= allowed && distance < characters).then_some(word)
}

/// The number of insertions, removals, replacements and swaps of neighbours between two words
/// (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut left_before = None;
    for (row, left_here) in left.chars().enumerate() {
        let mut current = vec![row + 1];
        let mut right_before = None;
        for (column, right_here) in right.iter().copied().enumerate() {
            let at =
                |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&last, column) + usize::from(left_here != right_here);
            let inserted = at(&current, column) + 1;
            let removed = at(&last, column + 1) + 1;
            let mut best = replaced.min(inserted).min(removed);
            if left_before == Some(right_here) && right_before == Some(left_here) {
                best = best.min(at(&before_last, column.wrapping_sub(1)).saturating_add(1));
            }
            current.push(best);
            right_before = Some(right_here);
        }
        before_last = std::mem::replace(&mut last, current);
        left_before = Some(left_here);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
