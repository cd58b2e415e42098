//! The cost for the server of one transaction costs the server, by its processor time at rates it holds: the figure that stays
//! right when the client is too weak to find the server's limit.

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Microseconds of the server's processor time, per second.
    pub cpu_us: f64,
    /// Transactions with a full handshake, per second.
    pub full: f64,
    /// Transactions with a resumed one, per second.
    pub resumed: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A transaction with a full handshake, in microseconds; absent if the steps do not tell.
    pub full_us: Option<f64>,
    /// One with a resumed handshake.
    pub resumed_us: Option<f64>,
}

impl Costs {
    /// Fits cpu = full × full_us + resumed × resumed_us to the observations by least squares. A deviation weighs by the root of
    /// the time it is a deviation of, as counts of independent events deviate, so the busiest steps say most.
    ///
    /// There is no term for a server at rest: it would take up what each transaction costs more at low rates, when nothing is
    /// shared with the one before, and then the slope that is left is less than any transaction costs.
    ///
    /// Steps of several numbers of transactions per session are needed to tell the two kinds apart. `None` if nothing can be told.
    pub fn of(observations: &[Observation]) -> Option<Self> {
        let used: Vec<_> = observations.iter().filter(|seen| seen.is_usable()).collect();
        let sum = |term: fn(&Observation) -> f64| used.iter().map(|seen| term(seen)).sum::<f64>();
        // The normal equations; their right side has no weights left in it.
        let full_full = sum(|seen| seen.full * seen.full / seen.cpu_us);
        let resumed_resumed = sum(|seen| seen.resumed * seen.resumed / seen.cpu_us);
        let both = sum(|seen| seen.full * seen.resumed / seen.cpu_us);
        let full = sum(|seen| seen.full);
        let resumed = sum(|seen| seen.resumed);
        let (full_us, resumed_us) = match (full_full > 0.0, resumed_resumed > 0.0) {
            (true, true) => {
                let square = full_full * resumed_resumed;
                let determinant = square - both * both;
                if determinant.is_nan() || determinant <= DEPENDENT * square {
                    return None;
                }
                let full_us = (resumed_resumed * full - both * resumed) / determinant;
                let resumed_us = (full_full * resumed - both * full) / determinant;
                (Some(full_us), Some(resumed_us))
            }
            (true, false) => (Some(full / full_full), None),
            (false, true) => (None, Some(resumed / resumed_resumed)),
            (false, false) => return None,
        };
        let if_sound = |cost: Option<f64>| cost.filter(|cost| *cost > 0.0 && cost.is_finite());
        Some(Self { full_us: if_sound(full_us), resumed_us: if_sound(resumed_us) })
    }
}

impl Observation {
    fn is_usable(&self) -> bool {
        self.cpu_us > 0.0 && self.cpu_us.is_finite() && self.full + self.resumed > 0.0
    }
}

/// Below this, what is left of one kind after the other is taken out is noise.
const DEPENDENT: f64 = 1e-4;

#[cfg(test)]
mod tests;
