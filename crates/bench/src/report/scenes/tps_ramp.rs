//! `tps-ramp`: Bernat's chart for each server, his points as bars, and what a handshake costs.

use super::{bars, has_content, sized};
use crate::report::axis::Axis;
use crate::report::bars::{Bar, Bars, Group};
use crate::report::chart::{Chart, Part, Picture, Span};
use crate::report::finding;
use crate::report::gathered::Scene;
use crate::report::look::{Look, Marker};
use crate::report::plot::{Curve, Panel, Plot};
use crate::report::sampling::Samples;
use crate::report::scale::Kind;
use crate::report::table::Table;

pub(super) fn charts(scene: &Scene) -> Vec<Chart> {
    let summary = scene.samples.part("summary");
    let full = ("cpu_us_per_full_transaction", "");
    let resumed = ("cpu_us_per_resumed_transaction", "");
    vec![
        points(&summary),
        ramps(&scene.samples.part("step")),
        bars(
            &summary,
            ("tps-ramp-full", "What does a full handshake cost the server?"),
            &[full],
            &["k"],
        ),
        bars(
            &summary,
            ("tps-ramp-resumed", "What does a resumed handshake cost the server?"),
            &[resumed],
            &["k"],
        ),
    ]
}

/// A two-panel chart for each server and facet; those of a facet share their axes.
fn ramps(steps: &Samples) -> Chart {
    let mut parts = Vec::new();
    for (group, facet) in steps.facets(&["rate"]) {
        let ends = Ends::of(&facet);
        for subject in facet.subjects() {
            let picture = Picture::Plot(ramp(&facet.subject(subject), subject, &ends));
            parts.push(Part { group: group.clone(), label: subject.to_owned(), picture });
        }
    }
    parts.retain(|part| has_content(&part.picture));
    let mut chart =
        sized("tps-ramp-steps", "What happens as more is asked than can be done?", parts);
    chart.span = Span::Full;
    chart.note = "Above: transactions attempted, successful and failed; successful bends away where the server is full. \
                  Below: latency from the moment a transaction was due."
        .to_owned();
    chart
}

/// The ends of the axes that several ramps share.
struct Ends {
    rates: Vec<f64>,
    latencies: Vec<f64>,
}

impl Ends {
    fn of(samples: &Samples) -> Self {
        let values = |figures: &'static [&'static str]| {
            samples.iter().flat_map(move |sample| {
                figures.iter().filter_map(|figure| sample.figures.get(*figure))
            })
        };
        let rates = values(&["attempted_per_second"]).copied().fold(0.0, f64::max);
        let latencies = values(&["mean_us", "p99_us"]).copied().filter(|value| *value > 0.0);
        let (low, high) = latencies
            .fold((1e5, 5e5), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
        Self { rates: vec![0.0, rates], latencies: vec![low, high] }
    }
}

fn ramp(samples: &Samples, subject: &str, ends: &Ends) -> Plot {
    let own = Look::of(subject).unmarked();
    let curve = |name: &str, look, figure| Curve {
        name: name.to_owned(),
        look: Look { stroke: look_stroke(name), ..look },
        points: samples.along("rate", figure),
    };
    let above = [
        curve("successful", own, "succeeded_per_second"),
        curve("attempted", Look::ASKED, "attempted_per_second"),
        curve("failed", Look::FAILED, "failed_per_second"),
    ];
    let below = [curve("mean", own, "mean_us"), curve("p99", own, "p99_us")];
    let full = |curves: &[Curve]| -> Vec<Curve> {
        curves.iter().filter(|curve| !curve.points.is_empty()).cloned().collect()
    };
    let panel = |y, curves, guides| Panel { y, curves, guides, envelope: Vec::new() };
    let bounds = vec![(1e5, "100 ms".to_owned()), (5e5, "500 ms".to_owned())];
    let axis = |label, unit, kind, includes: &[f64]| Axis {
        includes: includes.to_vec(),
        ..Axis::new(label, unit, kind)
    };
    let rate = axis("Transactions", "1/s", Kind::Linear, &ends.rates);
    let latency = axis("Latency", "µs", Kind::Log10, &ends.latencies);
    Plot {
        x: axis("Attempted", "1/s", Kind::Linear, &ends.rates),
        panels: vec![panel(rate, full(&above), Vec::new()), panel(latency, full(&below), bounds)],
        marks: Vec::new(),
    }
}

/// What is asked for is dashed, the higher of two latencies dotted.
fn look_stroke(name: &str) -> &'static str {
    match name {
        "attempted" => "p-write",
        "p99" => "p-sendfile",
        _ => "p-user",
    }
}

/// Bernat's points: so many transactions with a mean of at most 100 ms, more with 500 ms, most at all.
fn points(summary: &Samples) -> Chart {
    let samples = summary.having("tps_max");
    let groups = samples.facets(&[]).into_iter().map(|(label, samples)| Group {
        label,
        bars: samples
            .subjects()
            .iter()
            .map(|subject| nested(&samples.subject(subject), subject))
            .collect(),
    });
    let groups: Vec<Group> = groups.filter(|group| !group.bars.is_empty()).collect();
    let picture = Picture::Bars(Bars {
        axis: Axis::from_zero("Successful transactions", "1/s"),
        groups,
        parts: ["mean at most 100 ms", "at most 500 ms", "most"].map(str::to_owned).to_vec(),
        value_is_first: true,
    });
    let mut chart =
        Chart::new("tps-ramp-points", "How many new connections can be taken?", picture);
    chart.span = Span::Full;
    chart.panels.retain(|part| has_content(&part.picture));
    chart.finding = leaders(&samples);
    chart.note = "The number is where the first part of the bar ends: what is done with a mean latency of at most 100 ms.".to_owned();
    chart.table = all_points(&samples);
    chart
}

fn nested(samples: &Samples, subject: &str) -> Bar {
    let estimate = |figure| samples.estimate(figure);
    let mut ends: Vec<f64> = ["tps_mean_100ms", "tps_mean_500ms", "tps_max"]
        .iter()
        .map(|figure| estimate(figure).map_or(0.0, |estimate| estimate.median))
        .collect();
    // Noise may put a stricter point above a laxer one, which cannot be: what held 100 ms held 500 ms.
    ends.sort_by(f64::total_cmp);
    let look = Look { marker: Marker::None, ..Look::of(subject) };
    Bar { label: subject.to_owned(), look, ends, interval: (0.0, 0.0) }
}

fn leaders(samples: &Samples) -> String {
    let mut leaders: Vec<(String, Vec<String>)> = Vec::new();
    for (label, facet) in samples.facets(&[]) {
        let best = facet.subjects().into_iter().filter_map(|subject| {
            Some((subject, facet.subject(subject).estimate("tps_mean_100ms")?.median))
        });
        let Some((best, _)) = best.max_by(|(_, a), (_, b)| a.total_cmp(b)) else { continue };
        match leaders.iter_mut().find(|(subject, _)| subject == best) {
            Some((_, labels)) => labels.push(label),
            None => leaders.push((best.to_owned(), vec![label])),
        }
    }
    let sentences = leaders.iter().map(|(subject, labels)| match labels.as_slice() {
        [only] if only.is_empty() => subject.clone(),
        _ if leaders.len() == 1 => format!("{subject} in all {} cases", labels.len()),
        labels => format!("{subject} ({})", finding::joined(labels)),
    });
    let sentences: Vec<String> = sentences.collect();
    if sentences.is_empty() {
        return String::new();
    }
    format!("Most within a mean of 100 ms: {}.", sentences.join("; "))
}

fn all_points(samples: &Samples) -> Table {
    let figures = [
        "tps_max",
        "tps_mean_100ms",
        "tps_mean_500ms",
        "tps_p99_100ms",
        "tps_loss_0_1_percent",
        "tps_loss_0_01_percent",
    ];
    let heads = figures.map(|figure| Axis::of_figure(figure).label);
    let mut table = Table::new(2, ["".to_owned(), "Server".to_owned()].into_iter().chain(heads));
    for (label, facet) in samples.facets(&[]) {
        for subject in facet.subjects() {
            let own = facet.subject(subject);
            let cells = figures.iter().map(|figure| {
                let estimate = own.estimate(figure);
                estimate.map_or("–".to_owned(), |e| Axis::of_figure(figure).exactly(e.median))
            });
            table.push([label.clone(), subject.to_owned()].into_iter().chain(cells));
        }
    }
    table
}
