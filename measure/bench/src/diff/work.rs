//! Verdicts on work counted under an emulator. It repeats to the bit, so a tolerance decides instead of an interval; and a
//! change that would turn with the way copies are counted is none.

use std::collections::BTreeMap;

use super::{DiffRow, words};
use crate::figure::{Better, Figure};
use crate::stats::comparison::Verdict;

/// Same, better or worse; never undecided.
pub(crate) fn verdict(figure: &Figure, a: f64, b: f64) -> Verdict {
    let difference = b - a;
    let tolerated = match figure.name {
        "aes_blocks_per_byte" => 0.005 * a.abs(),
        "copied_bytes_per_byte" | "zeroed_bytes_per_byte" => 0.05,
        _ => 0.02 * a.abs(),
    };
    let is_same = difference.abs() <= tolerated;
    match (is_same, figure.better) {
        (true, _) | (_, Better::Neither) => Verdict::Same,
        (false, Better::Higher) if difference > 0.0 => Verdict::Better,
        (false, Better::Lower) if difference < 0.0 => Verdict::Better,
        (false, _) => Verdict::Worse,
    }
}

/// Emulators count each byte of a string copy as an instruction, or do not, by a flag of the processor they present. If a
/// figure was taken both ways, a change is real only if it has the same direction in both.
pub(super) fn keep_what_holds_for_all_copies(rows: &mut [DiffRow]) {
    let mut both_ways: BTreeMap<String, Vec<Verdict>> = BTreeMap::new();
    for row in rows.iter() {
        both_ways.entry(without_copies(row)).or_default().push(row.verdict);
    }
    for row in rows {
        let is_change = matches!(row.verdict, Verdict::Better | Verdict::Worse);
        let verdicts = both_ways.get(&without_copies(row));
        let holds = verdicts.is_none_or(|all| all.iter().all(|verdict| *verdict == row.verdict));
        if is_change && !holds {
            row.verdict = Verdict::Undecided;
        }
    }
}

/// Returns the name of a figure but for the way copies are counted.
fn without_copies(row: &DiffRow) -> String {
    let mut point = words(&row.point);
    point.retain(|(axis, _)| *axis != COPIES);
    format!("{:?}", (&row.scenario, &row.subject, &row.part, point, row.figure.name))
}

/// The axis that says whether the processor has fast string copies.
const COPIES: &str = "erms";

#[cfg(test)]
mod tests;
