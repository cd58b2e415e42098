//! `streaming`, `idle-memory` and `mixed`: what connections cost that stay.

use super::{at_most, bars, over};
use crate::report::axis::Axis;
use crate::report::chart::Chart;
use crate::report::finding;
use crate::report::gathered::Scene;
use crate::report::look;
use crate::report::sampling::{Samples, describe};
use crate::report::speech;
use crate::stats::comparison::SAMPLES_MIN;

/// The same throughput for all.
pub(super) fn streaming(scene: &Scene) -> Vec<Chart> {
    let samples = &scene.samples;
    let processor =
        [("cpu_user_percent", "in user space"), ("cpu_system_percent", "in the kernel")];
    let mut cpu = bars(
        samples,
        ("streaming-cpu", "How much processor does the same stream take?"),
        &processor,
        &[],
    );
    for part in &mut cpu.panels {
        if let crate::report::chart::Picture::Bars(bars) = &mut part.picture {
            bars.axis = Axis::from_zero("Server CPU", "% of one core");
        }
    }
    cpu.note = "Everyone sends the same; less is better.".to_owned();
    // Of the whole, which is measured, not of the parts, which the kernel estimates by ticks.
    cpu.finding = at_most(samples, "throughput", "cpu_percent");
    let mut charts = vec![cpu];
    if samples.values("throughput").len() > 1 {
        let axis = Axis::of_figure("cpu_percent");
        let about = ("streaming-load", "How does it grow with throughput?");
        charts.push(over(samples, about, "throughput", &axis, "cpu_percent"));
    }
    charts.push(memory(samples, ("streaming-memory", "How much memory does a connection hold?")));
    let first = [("first_byte_p99_us", "")];
    charts.push(bars(
        samples,
        ("streaming-first-byte", "How long does the first byte take? 99th percentile"),
        &first,
        &[],
    ));
    let stalls = [("stalls_per_1000", "")];
    charts.push(bars(samples, ("streaming-stalls", "How many objects come late?"), &stalls, &[]));
    let softirq = [("softirq_percent", "")];
    charts.push(bars(
        samples,
        ("streaming-softirq", "How much does the network stack take beside it?"),
        &softirq,
        &[],
    ));
    charts
}

/// Connections that do nothing.
pub(super) fn idle_memory(scene: &Scene) -> Vec<Chart> {
    let mut chart =
        memory(&scene.samples, ("idle-memory", "How much is the server's, how much the kernel's?"));
    chart.name = "idle-memory-bytes".to_owned();
    vec![chart]
}

/// Bulk beside a storm of handshakes.
pub(super) fn mixed(scene: &Scene) -> Vec<Chart> {
    let samples = &scene.samples;
    let latency = Axis::of_figure("p99_us").by_ratios();
    let about = ("mixed-p99", "How long do those being served wait as handshakes come in?");
    let mut p99 = over(samples, about, "storm", &latency, "p99_us");
    p99.finding = growth(samples);
    let through = "gigabits_per_second";
    let about = ("mixed-throughput", "How much is still sent beside the handshakes?");
    vec![p99, over(samples, about, "storm", &Axis::of_figure(through), through)]
}

fn memory(samples: &Samples, about: (&str, &str)) -> Chart {
    let parts = [
        ("memory_bytes_per_connection", "in the process"),
        ("kernel_bytes_per_connection", "in the kernel"),
    ];
    let mut chart = bars(samples, about, &parts, &[]);
    for part in &mut chart.panels {
        if let crate::report::chart::Picture::Bars(bars) = &mut part.picture {
            bars.axis = Axis::from_zero("Memory per connection", "B");
        }
    }
    chart
}

/// How much longer those wait that wait longest, from the calmest to the wildest storm.
fn growth(samples: &Samples) -> String {
    let samples = samples.having("p99_us").only(|sample| look::way(&sample.subject) != "plain");
    let storms = samples.values("storm");
    let (Some(calm), Some(wild)) = (storms.first(), storms.last()) else { return String::new() };
    let mut rounds = usize::MAX;
    let grown = samples.subjects().into_iter().filter_map(|subject| {
        let own = samples.subject(subject);
        let before = own.at("storm", calm).estimate("p99_us")?;
        let after = own.at("storm", wild).estimate("p99_us")?;
        rounds = rounds.min(before.samples).min(after.samples);
        let axis = Axis::of_figure("p99_us");
        let (before, after) = (axis.exactly(before.median), axis.exactly(after.median));
        Some(format!("from {before} to {after} with {subject}"))
    });
    let grown: Vec<String> = grown.collect();
    if grown.is_empty() || storms.len() < 2 {
        return String::new();
    }
    let sure = if rounds < SAMPLES_MIN {
        format!(" With {} that is a first look.", speech::rounds(rounds))
    } else {
        String::new()
    };
    format!(
        "The time within which 99 of 100 requests are answered goes {}, from {} to {}.{sure}",
        finding::joined(&grown),
        describe("storm", calm),
        describe("storm", wild)
    )
}
