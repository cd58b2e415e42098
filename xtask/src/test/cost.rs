//! The cost of a stage: the time that passed, and the processor time of the programs it ran, which tells a stage that computes
//! from one that waits.

use std::fmt;
use std::fs;
use std::time::Instant;

/// The time of some stages, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// By the clock.
    pub seconds: f64,
    /// On processors, of all programs that were waited for.
    pub processor_seconds: f64,
}

impl Cost {
    /// Both one after the other.
    pub fn and(self, other: Self) -> Self {
        Self {
            seconds: self.seconds + other.seconds,
            processor_seconds: self.processor_seconds + other.processor_seconds,
        }
    }
}

/// Seconds, and how many processors were busy meanwhile.
impl fmt::Display for Cost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.0} s", self.seconds)?;
        if self.seconds >= 1.0 {
            write!(out, " × {:.1}", self.processor_seconds / self.seconds)?;
        }
        Ok(())
    }
}

pub struct Started {
    at: Instant,
    processor_seconds: f64,
}

impl Started {
    pub fn now() -> Self {
        Self { at: Instant::now(), processor_seconds: of_children() }
    }

    pub fn cost(&self) -> Cost {
        Cost {
            seconds: self.at.elapsed().as_secs_f64(),
            processor_seconds: of_children() - self.processor_seconds,
        }
    }
}

/// Processor time of all programs that ended and were waited for (proc_pid_stat(5), `cutime` and `cstime`), 0 where it is not told.
fn of_children() -> f64 {
    fs::read_to_string("/proc/self/stat").ok().and_then(|stat| children_in(&stat)).unwrap_or(0.0)
}

fn children_in(stat: &str) -> Option<f64> {
    // The name in brackets may hold spaces and brackets.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split(' ').skip(CUTIME - STATE).map(str::parse::<u64>);
    let ticks = times.next()?.ok()? + times.next()?.ok()?;
    Some(ticks as f64 / TICKS_PER_SECOND)
}

/// Fields as proc_pid_stat(5) numbers them.
const STATE: usize = 3;
const CUTIME: usize = 16;
/// `USER_HZ`, which is the same on every processor we run on.
const TICKS_PER_SECOND: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_of_children_is_read_behind_a_name_with_brackets() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 10 20 0 0 30 40 150 250 20 0 1 0 99 0 0";
        assert_eq!(children_in(stat), Some(4.0));
        assert_eq!(children_in("7 (a"), None);
    }

    #[test]
    fn a_cost_says_how_many_processors_were_busy() {
        let one = Cost { seconds: 10.0, processor_seconds: 4.0 };
        let both = one.and(Cost { seconds: 10.0, processor_seconds: 20.0 });
        assert_eq!(one.to_string(), "10 s × 0.4");
        assert_eq!(both.to_string(), "20 s × 1.2");
        assert_eq!(Cost::default().to_string(), "0 s");
    }
}
