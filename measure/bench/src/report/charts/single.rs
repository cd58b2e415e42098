//! `ktls-setup`, `ciphers`, `cached`, `proxy`, `growth` and `work`: one question each.

use super::{bars, over_on, ratios, web_sizes};
use crate::figure;
use crate::report::axis::Axis;
use crate::report::chart::{Chart, Picture};
use crate::report::gathered::ScenarioResults;
use crate::report::sampling::Samples;
use crate::report::scale::ScaleKind;
use crate::report::table::Table;
use crate::results::Value;

/// Connections that close at once.
pub(super) fn ktls_setup(scenario: &ScenarioResults) -> Vec<Chart> {
    let samples = &scenario.samples;
    let figure = figure::CPU_US_PER_TRANSACTION.name;
    let pays =
        ("ktls-setup-ratio", "From which size does the kernel pay, if the connection closes?");
    let costs = ("ktls-setup-cpu", "What does a transaction cost the server?");
    vec![web_sizes::relative(samples, pays, figure), ratios(samples, costs, "size", figure)]
}

/// Bulk by suite.
pub(super) fn ciphers(scenario: &ScenarioResults) -> Vec<Chart> {
    let one = |name, question, figure| bars(&scenario.samples, (name, question), &[(figure, "")]);
    vec![
        one("ciphers-cpu", "What does a byte cost the server?", figure::CPU_NS_PER_BYTE.name),
        one("ciphers-throughput", "How much is sent?", figure::GIGABITS_PER_SECOND.name),
    ]
}

/// Kept responses: what is there, what has to come, what is coming.
pub(super) fn cached(scenario: &ScenarioResults) -> Vec<Chart> {
    let asked_for = |what: &str| scenario.samples.at("cache", &Value::Word(what.to_owned()));
    let cpu = figure::CPU_NS_PER_REQUEST.name;
    let hit = ("cached-hit", "What does a kept response cost the server?");
    let miss = ("cached-miss", "What does one of 1 KiB cost that has to come first?");
    let late = ("cached-late", "How long do those wait who ask for what is arriving?");
    let waits = [(figure::FIRST_BYTE_P99_US.name, ""), (figure::UPSTREAM_REQUESTS.name, "")];
    vec![
        ratios(&asked_for("hit"), hit, "size", cpu),
        bars(&asked_for("miss"), miss, &[(cpu, "")]),
        bars(&asked_for("late"), late, &waits),
    ]
}

/// A backend's answers, passed on.
pub(super) fn proxy(scenario: &ScenarioResults) -> Vec<Chart> {
    let of = |traffic: &str| scenario.samples.at("traffic", &Value::Word(traffic.to_owned()));
    let cpu = figure::CPU_US_PER_TRANSACTION.name;
    let fresh = ("proxy-fresh", "What does an answer cost a process that was just started?");
    let warm = ("proxy-warm", "What does it cost after other traffic?");
    vec![
        ratios(&of("fresh"), fresh, "size", cpu),
        ratios(&of("warm"), warm, "size", cpu),
        bars(&of("connection"), ("proxy-connection", "And on a new connection?"), &[(cpu, "")]),
        bars(&of("message"), ("proxy-message", "And a message of a WebSocket?"), &[(cpu, "")]),
    ]
}

/// A request beside more and more of something.
pub(super) fn growth(scenario: &ScenarioResults) -> Vec<Chart> {
    let cpu = figure::CPU_US_PER_TRANSACTION.name;
    let mut axis = Axis::new("Server CPU per request", "µs", ScaleKind::Log10);
    // A decade in each drawing, so that what is flat looks flat.
    axis.includes = vec![5.0, 50.0];
    let about = ("growth", "What does a request cost, the more there is?");
    let mut chart = over_on(&scenario.samples.part(""), about, "number", &axis, cpu);
    for part in &mut chart.panels {
        if let Picture::Plot(plot) = &mut part.picture {
            plot.x.kind = ScaleKind::Log10;
            plot.x.label.clone_from(&part.label);
        }
    }
    // One drawing's sentence would not hold for all.
    chart.conclusion.clear();
    vec![chart]
}

/// Work under an emulator.
pub(super) fn work(scenario: &ScenarioResults) -> Vec<Chart> {
    let samples = &scenario.samples;
    let by_size = |name, question, figure| ratios(samples, (name, question), "size", figure);
    let largest = |name, question, figure| largest(samples, (name, question), figure);
    let about = ("work-instructions", "Which path takes fewest instructions, by size of body?");
    let mut relative = web_sizes::relative(samples, about, figure::INSTRUCTIONS_PER_REQUEST.name);
    count_copies_step_by_step(&mut relative.answers, samples);
    relative.conclusion = "How a copy is counted decides which path looks cheapest, so read all ways of counting. Whether a path is \
                        faster is unproven here: instructions are not time."
        .to_owned();
    relative.note = "Drawn: instructions of a request as a multiple of the user path's, a string copy counted as one instruction."
        .to_owned();
    let copied = figure::COPIED_BYTES_PER_BYTE.name;
    let zeroed = figure::ZEROED_BYTES_PER_BYTE.name;
    let aes = figure::AES_BLOCKS_PER_BYTE.name;
    let calls = figure::CALLS_PER_REQUEST.name;
    let pages = figure::PAGES_ALLOCATED_PER_REQUEST.name;
    vec![
        relative,
        largest("work-copied", "How often is a byte copied?", copied),
        largest("work-zeroed", "How often is memory zeroed for it?", zeroed),
        largest("work-aes", "How often is it encrypted?", aes),
        by_size("work-calls", "How many system calls does a request take?", calls),
        by_size("work-pages", "How many pages are allocated for a request?", pages),
    ]
}

/// The same answers where each step of a string copy counts; only what holds by all ways of counting is a result.
fn count_copies_step_by_step(answers: &mut Table, samples: &Samples) {
    let figure = figure::COUNTED_INSTRUCTIONS_PER_REQUEST.name;
    for (label, _, samples) in web_sizes::programs(&samples.having(figure)) {
        let label = format!("{label}, each step of a copy counted");
        web_sizes::answer(answers, &label, &samples, figure);
    }
}

/// Bars at the largest body there is, where what a request costs by itself no longer shows.
fn largest(samples: &Samples, about: (&str, &str), figure: &str) -> Chart {
    let samples = samples.having(figure);
    let samples =
        samples.values("size").pop().map_or(samples.clone(), |size| samples.at("size", &size));
    bars(&samples, about, &[(figure, "")])
}
