//! Finds the crossover in measured rows, or says why they do not show one.

use crate::stats::Estimate;

/// The cost of responses with bodies of one size, in seconds of processor time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostRow {
    pub body_bytes: u64,
    /// Records sealed in this process.
    pub user: Estimate,
    /// Records encrypted by the kernel from a buffer.
    pub kernel_write: Option<Estimate>,
    /// Records encrypted by the kernel from the page cache.
    pub kernel_sendfile: Option<Estimate>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrossoverVerdict {
    /// The kernel is surely cheaper from this body size on, at every measured size.
    From(u64),
    /// The kernel is surely dearer for the largest body measured.
    Never,
    /// The figures of the largest body do not tell the two apart.
    Undecided,
    /// The machine was too busy to say.
    TooNoisy {
        /// The sizes whose figures are uncertain or changed while measuring.
        body_bytes: Vec<u64>,
    },
    /// There were too few rounds to tell the noise.
    TooShort,
    /// The kernel has no TLS for this suite.
    NoKernelTls,
}

impl CostRow {
    /// The kernel path the server would take: small hot files are in memory and are written, larger
    /// ones go by sendfile.
    pub fn kernel(&self, hot_file_bytes: u64) -> Option<&Estimate> {
        if self.body_bytes <= hot_file_bytes {
            self.kernel_write.as_ref()
        } else {
            self.kernel_sendfile.as_ref()
        }
    }

    /// True if a figure of this row is uncertain, or changed while measuring.
    pub fn is_noisy(&self) -> bool {
        [Some(&self.user), self.kernel_write.as_ref(), self.kernel_sendfile.as_ref()]
            .into_iter()
            .flatten()
            .any(|estimate| estimate.spread() > SPREAD_MAX || estimate.drift > DRIFT_MAX)
    }

    fn kernel_surely_wins(&self, hot_file_bytes: u64) -> bool {
        self.kernel(hot_file_bytes).is_some_and(|kernel| kernel.is_surely_below(&self.user))
    }

    fn kernel_surely_loses(&self, hot_file_bytes: u64) -> bool {
        self.kernel(hot_file_bytes).is_some_and(|kernel| self.user.is_surely_below(kernel))
    }
}

/// The smallest size from which the kernel is surely cheaper at all larger ones. Rows go from the
/// smallest to the largest body.
pub(super) fn find(rows: &[CostRow], rounds: usize, hot_file_bytes: u64) -> CrossoverVerdict {
    if rounds < ROUNDS_MIN {
        return CrossoverVerdict::TooShort;
    }
    let noisy: Vec<u64> =
        rows.iter().filter(|row| row.is_noisy()).map(|row| row.body_bytes).collect();
    if noisy.len() * NOISY_SHARE_MAX_OF > rows.len() {
        return CrossoverVerdict::TooNoisy { body_bytes: noisy };
    }
    let winning = rows.iter().rev().take_while(|row| row.kernel_surely_wins(hot_file_bytes)).last();
    match (winning, rows.last()) {
        (Some(row), _) => CrossoverVerdict::From(row.body_bytes),
        (None, Some(largest)) if largest.is_noisy() => {
            CrossoverVerdict::TooNoisy { body_bytes: noisy }
        }
        // The saving on a smaller body is not to be given up for a draw.
        (None, Some(largest)) if largest.kernel_surely_loses(hot_file_bytes) => {
            CrossoverVerdict::Never
        }
        (None, _) => CrossoverVerdict::Undecided,
    }
}

/// An interval wider than this to either side would hide the differences that matter.
const SPREAD_MAX: f64 = 0.05;
/// A change of speed by more than this between the halves of the run.
const DRIFT_MAX: f64 = 0.10;
/// One row in this many may be noisy.
const NOISY_SHARE_MAX_OF: usize = 3;
/// The interval of a median needs as many samples to mean anything.
const ROUNDS_MIN: usize = 8;

#[cfg(test)]
mod tests;
