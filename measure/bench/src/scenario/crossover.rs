//! From which size on one way costs less than another.

use std::fmt;

use super::bench::Bench;
use super::choose::files;
use crate::number::size;
use crate::peers::subject::{Program, SubjectPath};
use crate::report::plot::PlotPoint;

/// From which size on the second way costs less than the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossover {
    /// From about this size on, found between two measured ones.
    From(f64),
    /// At every size measured.
    Always,
    /// At no size measured, the largest one included.
    Never,
    /// The figures of the largest size do not tell the two apart.
    Undecided,
}

/// Says from which size on each program's paths through the kernel cost less than its process.
pub fn say(bench: &mut Bench<'_>, paths: &[SubjectPath], figure: &str) {
    for program in [Program::Nginx, Program::Kettle] {
        for path in paths {
            let costs = |path| bench.along(&files(program, path), "size", figure);
            if let Some(crossover) = of(&costs(SubjectPath::User), &costs(*path)) {
                bench.note(&format!("{} {crossover}", files(program, *path)));
            }
        }
    }
}

/// Compares costs at sizes that both have, smallest first; `None` with fewer than two.
pub fn of(first: &[PlotPoint], second: &[PlotPoint]) -> Option<Crossover> {
    let same = |of: &PlotPoint| second.iter().find(|other| other.x == of.x);
    let both: Vec<[&PlotPoint; 2]> = first.iter().filter_map(|of| Some([of, same(of)?])).collect();
    let [_, .., [first_last, second_last]] = both.as_slice() else { return None };
    if first_last.high >= second_last.low && second_last.high >= first_last.low {
        return Some(Crossover::Undecided);
    }
    let is_cheaper = |[first, second]: &&[&PlotPoint; 2]| second.middle < first.middle;
    let cheaper = both.iter().rev().take_while(is_cheaper).count();
    if cheaper == 0 {
        return Some(Crossover::Never);
    }
    let (dearer, cheaper) = both.split_at(both.len() - cheaper);
    match (dearer.last(), cheaper.first()) {
        (Some(below), Some(above)) => Some(Crossover::From(between(below, above))),
        _ => Some(Crossover::Always),
    }
}

/// Returns where the ratio of the two costs passes 1, with both on logarithmic axes.
fn between(below: &[&PlotPoint; 2], above: &[&PlotPoint; 2]) -> f64 {
    let ratio = |[first, second]: &[&PlotPoint; 2]| (second.middle / first.middle).ln();
    let from = ratio(below);
    let to = ratio(above);
    let share = if from > to { from / (from - to) } else { 0.5 };
    let small = below[0].x.max(1.0).ln();
    let large = above[0].x.max(1.0).ln();
    (small + (large - small) * share.clamp(0.0, 1.0)).exp()
}

impl fmt::Display for Crossover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(bytes) => {
                // To the next KiB; the measurement knows no better.
                let rounded = (*bytes / 1024.0).round().max(1.0) as u64 * 1024;
                write!(f, "costs less from about {} on", size(rounded))
            }
            Self::Always => f.write_str("costs less at every size measured"),
            Self::Never => f.write_str("costs more up to the largest size measured"),
            Self::Undecided => {
                f.write_str("cannot be told apart at the largest size; more rounds may help")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(pairs: &[(f64, f64)]) -> Vec<PlotPoint> {
        let near = |(x, middle): (f64, f64)| PlotPoint {
            x,
            low: middle * 0.99,
            middle,
            high: middle * 1.01,
        };
        pairs.iter().copied().map(near).collect()
    }

    #[test]
    fn it_lies_where_the_ratio_passes_one() {
        let user = costs(&[(1024.0, 10.0), (16384.0, 100.0), (65536.0, 400.0)]);
        let kernel = costs(&[(1024.0, 20.0), (16384.0, 200.0), (65536.0, 200.0)]);
        let Some(Crossover::From(bytes)) = of(&user, &kernel) else { panic!() };
        // Twice as dear at 16 KiB, half as dear at 64 KiB: the middle of their logarithms.
        assert!((bytes - 32768.0).abs() < 1.0, "{bytes}");
        assert_eq!(Crossover::From(bytes).to_string(), "costs less from about 32 KiB on");
    }

    #[test]
    fn it_may_be_everywhere_or_nowhere() {
        let user = costs(&[(1.0, 10.0), (2.0, 20.0)]);
        let cheap = costs(&[(1.0, 5.0), (2.0, 10.0)]);
        assert_eq!(of(&user, &cheap), Some(Crossover::Always));
        assert_eq!(of(&cheap, &user), Some(Crossover::Never));
    }

    #[test]
    fn figures_that_overlap_decide_nothing() {
        let user = costs(&[(1.0, 10.0), (2.0, 20.0)]);
        let same = costs(&[(1.0, 5.0), (2.0, 20.1)]);
        assert_eq!(of(&user, &same), Some(Crossover::Undecided));
    }

    #[test]
    fn a_size_that_only_one_has_does_not_count() {
        let user = costs(&[(1.0, 10.0), (2.0, 20.0)]);
        let kernel = costs(&[(1.0, 5.0), (3.0, 1.0)]);
        assert_eq!(of(&user, &kernel), None);
    }

    #[test]
    fn a_dear_size_between_cheap_ones_moves_it_behind_itself() {
        let user = costs(&[(1.0, 10.0), (2.0, 10.0), (4.0, 10.0)]);
        let kernel = costs(&[(1.0, 5.0), (2.0, 20.0), (4.0, 5.0)]);
        let Some(Crossover::From(bytes)) = of(&user, &kernel) else { panic!() };
        assert!(bytes > 2.0 && bytes < 4.0);
    }
}
