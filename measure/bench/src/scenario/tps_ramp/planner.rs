//! Which rate a ramp tries next: growing steps up to where the server gives way, then halvings of what is still open.

use super::points::bracket;
use super::step::{Bound, Step};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// The first rate, in transactions a second.
    pub start: f64,
    /// The factor from one rate to the next; above 1.
    pub growth: f64,
    pub rate_max: f64,
    /// The closeness to the knee at which a bound is found: the largest factor from the last rate that keeps it to the first
    /// that breaks it.
    pub resolution: f64,
    pub steps_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Try this rate, for a short time.
    Coarse(f64),
    /// Try this rate, long enough to publish it.
    Fine(f64),
    Done(Why),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Every bound is found as closely as was asked for.
    Found,
    /// The client gave way before the server did: the points are the least the server can do.
    ClientLimited,
    /// The server kept every bound up to the highest rate.
    RateMax,
    /// There have been as many steps as were allowed; the points are coarser than was asked for.
    Steps,
    /// Even one transaction a second breaks every bound.
    Hopeless,
}

#[derive(Clone, Debug)]
pub struct Planner {
    slope: Slope,
    /// One step a rate, in order of rates.
    pub steps: Vec<Step>,
    taken: usize,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Up,
    /// The step at this rate broke a bound. A neighbour on the machine can do that, so it is tried again.
    Doubting(f64),
    /// Between rates that count and rates that do not.
    Between,
}

impl Planner {
    pub fn new(slope: Slope) -> Self {
        Self { slope, steps: Vec::new(), taken: 0, phase: Phase::Up }
    }

    pub fn next(&self) -> Next {
        if self.taken >= self.slope.steps_max {
            return Next::Done(self.found_or(Why::Steps));
        }
        match self.phase {
            Phase::Doubting(rate) => Next::Coarse(rate),
            Phase::Up => self.up(),
            Phase::Between => match self.widest_open() {
                Some(rate) => Next::Fine(rate),
                None if self.nothing_counts() => Next::Done(Why::Hopeless),
                None => Next::Done(self.found_or(Why::Found)),
            },
        }
    }

    /// Takes what came of the step that was next. A step at a rate that was tried before replaces that one: it was taken
    /// because the first was in doubt.
    pub fn record(&mut self, step: Step) {
        self.taken += 1;
        self.phase = match self.phase {
            Phase::Up if !step.is_fine() => Phase::Doubting(step.rate),
            Phase::Doubting(_) if step.is_fine() => Phase::Up,
            Phase::Doubting(_) if breaks_all(&step) => Phase::Between,
            // One bound is broken and another not yet: that one's knee is further up.
            Phase::Doubting(_) => Phase::Up,
            phase => phase,
        };
        let at = self.steps.partition_point(|other| other.rate < step.rate);
        match self.steps.get_mut(at) {
            Some(same) if same.rate == step.rate => *same = step,
            _ => self.steps.insert(at, step),
        }
    }

    fn up(&self) -> Next {
        let Some(highest) = self.steps.last() else {
            return Next::Coarse(self.slope.start.min(self.slope.rate_max));
        };
        if highest.rate >= self.slope.rate_max {
            return Next::Done(self.found_or(Why::RateMax));
        }
        Next::Coarse((highest.rate * self.slope.growth).min(self.slope.rate_max))
    }

    /// The rate that halves the widest range in which some bound's knee still may be.
    fn widest_open(&self) -> Option<f64> {
        let open = |bound: &Bound| {
            let (counting, broken) = bracket(&self.steps, *bound);
            let broken = broken?.rate;
            // Nothing counts yet: look for something that does, further down.
            let counting = counting.map_or(broken / self.slope.growth.powi(2), |step| step.rate);
            let ratio = broken / counting;
            let middle = (broken * counting).sqrt();
            (ratio > self.slope.resolution && middle >= RATE_MIN).then_some((ratio, middle))
        };
        let widest = Bound::ALL.iter().filter_map(open).max_by(|a, b| a.0.total_cmp(&b.0));
        widest.map(|(_, rate)| rate)
    }

    fn nothing_counts(&self) -> bool {
        Bound::ALL.iter().all(|bound| bracket(&self.steps, *bound).0.is_none())
    }

    fn found_or(&self, why: Why) -> Why {
        let at_the_knee = |bound: &Bound| bracket(&self.steps, *bound).1;
        // The lowest step that breaks a bound is the one that ended the search.
        let ended =
            Bound::ALL.iter().filter_map(at_the_knee).min_by(|a, b| a.rate.total_cmp(&b.rate));
        if ended.is_some_and(|step| step.is_client_limited) { Why::ClientLimited } else { why }
    }
}

fn breaks_all(step: &Step) -> bool {
    Bound::ALL.iter().all(|bound| !step.keeps(*bound))
}

/// A bound that is broken even at this rate is not looked for further down.
const RATE_MIN: f64 = 1.0;

#[cfg(test)]
mod tests;
