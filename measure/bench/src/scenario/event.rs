//! The events of a run for those that watch it.

use std::time::Duration;

use kettle_loadgen::client::Progress;

use crate::results::{Absent, Sample};

#[derive(Clone, Copy, Debug)]
pub enum Event<'e> {
    Scenario {
        name: &'e str,
        title: &'e str,
        rules: &'e [String],
    },
    /// Something that takes a moment is prepared.
    Preparing(&'e str),
    /// A sample is being taken; at least once a second.
    Sampling(&'e Sampling<'e>),
    Sampled(&'e Sample),
    Absent(&'e Absent),
    Note(&'e str),
}

#[derive(Clone, Debug)]
pub struct Sampling<'e> {
    pub subject: &'e str,
    /// The point on the axes, in words.
    pub place: &'e str,
    /// The round, from 0.
    pub round: u32,
    /// Samples of this scenario that are there, those of an earlier run included.
    pub samples: usize,
    pub samples_planned: usize,
    /// The time this scenario still takes, about.
    pub left: Duration,
    pub progress: Progress,
}
