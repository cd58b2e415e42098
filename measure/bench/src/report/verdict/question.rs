//! The questions people ask before they choose a server, and where the answers stand in results.

use crate::figure::{self, Figure, Phrase};
use crate::report::sampling::{Samples, describe};
use crate::results::Value;

#[derive(Debug)]
pub struct Question {
    pub name: &'static str,
    /// The subject of the measurement, with a word for the size or the rate in place of `{}`.
    pub about: &'static str,
    /// The purpose of the cost, in a sentence, with the same word.
    pub purpose: &'static str,
    /// The places where answers may stand, the best place first; all measure the same.
    pub sources: &'static [FigureSource],
}

#[derive(Debug)]
pub struct FigureSource {
    pub scenario: &'static str,
    /// The kind of samples within it.
    pub part: &'static str,
    pub figure: &'static str,
    /// Which point of each axis, where there are several.
    at: &'static [(&'static str, End)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Smallest,
    Largest,
    /// The smallest of bodies that are small.
    SmallBody,
    /// The largest of bodies that are large.
    LargeBody,
}

impl End {
    fn of(self, values: &[Value]) -> Option<&Value> {
        let is_large = |value: &&Value| matches!(value, Value::Number(bytes) if *bytes >= LARGE);
        match self {
            End::Smallest => values.first(),
            End::Largest => values.last(),
            End::SmallBody => values.first().filter(|value| !is_large(value)),
            End::LargeBody => values.last().filter(is_large),
        }
    }
}

impl Question {
    pub fn scenario(&self) -> &'static str {
        self.sources.first().map_or("", |source| source.scenario)
    }

    pub fn figure(&self) -> &'static str {
        self.sources.first().map_or("", |source| source.figure)
    }

    pub fn phrase(&self) -> Phrase {
        figure::find(self.figure()).and_then(|it| it.phrase).unwrap_or_default()
    }
}

impl FigureSource {
    /// The samples that answer, and the last axis of `at` in words.
    pub fn pick<'a>(&self, samples: &Samples<'a>) -> Option<(Samples<'a>, String)> {
        let mut samples = samples.part(self.part).having(self.figure);
        let mut word = String::new();
        for (axis, end) in self.at {
            let values = samples.values(axis);
            if values.is_empty() {
                continue;
            }
            let value = end.of(&values)?;
            word = describe(axis, value);
            samples = samples.at(axis, value);
        }
        for (axis, usual) in USUAL {
            let usual = Value::Word((*usual).to_owned());
            if samples.values(axis).contains(&usual) {
                samples = samples.at(axis, &usual);
            }
        }
        (!samples.is_empty()).then_some((samples, word))
    }
}

pub const QUESTIONS: &[Question] = &[
    Question {
        name: "Handshake",
        about: "processor time for a new connection: full handshake, 1 KiB, close",
        purpose: "for a handshake",
        sources: &[
            ramp(figure::CPU_US_PER_FULL_TRANSACTION),
            source("ktls-setup", figure::CPU_US_PER_TRANSACTION, &[("size", End::Smallest)]),
        ],
    },
    Question {
        name: "Resumed handshake",
        about: "processor time for a connection that resumes a session: handshake, 1 KiB, close",
        purpose: "for a resumed handshake",
        sources: &[ramp(figure::CPU_US_PER_RESUMED_TRANSACTION)],
    },
    Question {
        name: "Small body",
        about: "processor time for a {} file on a connection that stays",
        purpose: "for a {} file",
        sources: &[source("web-sizes", figure::CPU_NS_PER_REQUEST, &[("size", End::SmallBody)])],
    },
    Question {
        name: "Large body",
        about: "processor time for a {} file on a connection that stays",
        purpose: "for a {} file",
        sources: &[
            source("web-sizes", figure::CPU_NS_PER_REQUEST, &[("size", End::LargeBody)]),
            source("ciphers", figure::CPU_NS_PER_REQUEST, &[("size", End::LargeBody)]),
        ],
    },
    Question {
        name: "Whole download",
        about: "processor time for a GiB, in one file of {} at a time",
        purpose: "for a GiB in one file",
        sources: &[source("nginx-1g", figure::CPU_SECONDS_PER_GIB, &[("size", End::Largest)])],
    },
    Question {
        name: "Memory",
        about: "memory of the server's process for a connection that waits, {}",
        purpose: "for a waiting connection",
        sources: &[source(
            "idle-memory",
            figure::MEMORY_BYTES_PER_CONNECTION,
            &[("connections", End::Largest), ("requests", End::Largest)],
        )],
    },
    Question {
        name: "Streaming",
        about: "processor time when all send {} to the same clients",
        purpose: "for a stream of {}",
        sources: &[source(
            "streaming",
            figure::CPU_PERCENT,
            &[("connections", End::Largest), ("throughput", End::Largest)],
        )],
    },
];

const fn source(
    scenario: &'static str,
    figure: Figure,
    at: &'static [(&'static str, End)],
) -> FigureSource {
    FigureSource { scenario, part: "", figure: figure.name, at }
}

/// With one worker, and the fewest connections of a session.
const fn ramp(figure: Figure) -> FigureSource {
    let at = &[("workers", End::Smallest), ("k", End::Smallest)];
    FigureSource { scenario: "tps-ramp", part: "summary", figure: figure.name, at }
}

/// The words to compare where an axis has several words: what most people run.
const USUAL: &[(&str, &str)] = &[
    ("key", "p256"),
    ("suite", "aes-128-gcm"),
    ("group", "x25519"),
    ("version", "1.3"),
    ("resumption", "ticket"),
];
/// Above 64 KiB a body is large: kettle keeps none of that size in memory unless it is told to.
const LARGE: f64 = 65_537.0;
