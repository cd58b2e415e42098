//! `streaming`, `idle-memory` and `mixed`: what connections cost that stay.

use super::{at_most, bars, on_axis, over, ratios};
use crate::figure;
use crate::report::axis::Axis;
use crate::report::chart::Chart;
use crate::report::conclusion;
use crate::report::gathered::ScenarioResults;
use crate::report::sampling::{Samples, describe};
use crate::report::speech;
use crate::report::style;
use crate::stats::comparison::SAMPLES_MIN;

/// The same throughput for all.
pub(super) fn streaming(scenario: &ScenarioResults) -> Vec<Chart> {
    let samples = &scenario.samples;
    let one = |name, question, figure| bars(samples, (name, question), &[(figure, "")]);
    let processor = [
        (figure::CPU_USER_PERCENT.name, "in user space"),
        (figure::CPU_SYSTEM_PERCENT.name, "in the kernel"),
    ];
    let about = ("streaming-cpu", "How much processor does the same stream take?");
    let axis = Axis::from_zero("Server CPU", "% of one core");
    let mut cpu = on_axis(bars(samples, about, &processor), &axis);
    cpu.note = "Everyone sends the same; less is better.".to_owned();
    // Of the whole, which is measured, not of the parts, which the kernel estimates by ticks.
    let whole = figure::CPU_PERCENT.name;
    cpu.conclusion = at_most(samples, "throughput", whole);
    let mut charts = vec![cpu];
    if samples.values("throughput").len() > 1 {
        let about = ("streaming-load", "How does it grow with throughput?");
        charts.push(over(samples, about, "throughput", whole));
    }
    let first = "How long does the first byte take? 99th percentile";
    let softirq = "How much does the network stack take beside it?";
    charts.extend([
        memory(samples, ("streaming-memory", "How much memory does a connection hold?")),
        one("streaming-first-byte", first, figure::FIRST_BYTE_P99_US.name),
        one("streaming-stalls", "How many objects come late?", figure::STALLS_PER_1000.name),
        one("streaming-softirq", softirq, figure::SOFTIRQ_PERCENT.name),
    ]);
    charts
}

/// Connections that do nothing.
pub(super) fn idle_memory(scenario: &ScenarioResults) -> Vec<Chart> {
    let about = ("idle-memory-bytes", "How much is the server's, how much the kernel's?");
    vec![memory(&scenario.samples, about)]
}

/// Bulk beside a flood of handshakes.
pub(super) fn mixed(scenario: &ScenarioResults) -> Vec<Chart> {
    let samples = &scenario.samples;
    let about = ("mixed-p99", "How long do those being served wait as handshakes come in?");
    let mut p99 = ratios(samples, about, "flood", figure::P99_US.name);
    p99.conclusion = growth(samples);
    let through = figure::GIGABITS_PER_SECOND.name;
    let about = ("mixed-throughput", "How much is still sent beside the handshakes?");
    vec![p99, over(samples, about, "flood", through)]
}

fn memory(samples: &Samples, about: (&str, &str)) -> Chart {
    let parts = [
        (figure::MEMORY_BYTES_PER_CONNECTION.name, "in the process"),
        (figure::KERNEL_BYTES_PER_CONNECTION.name, "in the kernel"),
    ];
    on_axis(bars(samples, about, &parts), &Axis::from_zero("Memory per connection", "B"))
}

/// Says how much longer those wait that wait longest, from the smallest to the largest flood.
fn growth(samples: &Samples) -> String {
    let samples =
        samples.having(figure::P99_US.name).only(|sample| style::way(&sample.subject) != "plain");
    let floods = samples.values("flood");
    let (Some(calm), Some(wild)) = (floods.first(), floods.last()) else { return String::new() };
    let mut rounds = usize::MAX;
    let grown = samples.subjects().into_iter().filter_map(|subject| {
        let own = samples.subject(subject);
        let before = own.at("flood", calm).estimate(figure::P99_US.name)?;
        let after = own.at("flood", wild).estimate(figure::P99_US.name)?;
        rounds = rounds.min(before.samples).min(after.samples);
        let axis = Axis::of_figure(figure::P99_US.name);
        let before = axis.exactly(before.median);
        let after = axis.exactly(after.median);
        Some(format!("from {before} to {after} with {subject}"))
    });
    let grown: Vec<String> = grown.collect();
    if grown.is_empty() || floods.len() < 2 {
        return String::new();
    }
    let sure = if rounds < SAMPLES_MIN {
        format!(" With {} that is a first look.", speech::rounds(rounds))
    } else {
        String::new()
    };
    format!(
        "The time within which 99 of 100 requests are answered goes {}, from {} to {}.{sure}",
        conclusion::joined(&grown),
        describe("flood", calm),
        describe("flood", wild)
    )
}
