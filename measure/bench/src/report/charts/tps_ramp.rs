//! `tps-ramp`: Bernat's chart for each server, his points as bars, and what a handshake costs.

use super::bars;
use crate::figure;
use crate::report::axis::Axis;
use crate::report::bars::{Bar, Bars, Group};
use crate::report::chart::{Chart, Part, Picture};
use crate::report::conclusion;
use crate::report::gathered::ScenarioResults;
use crate::report::plot::{Curve, Panel, Plot};
use crate::report::sampling::Samples;
use crate::report::scale::ScaleKind;
use crate::report::style::{Marker, Style};
use crate::report::table::Table;
use crate::results::{Sample, Value};

pub(super) fn charts(scenario: &ScenarioResults) -> Vec<Chart> {
    let summary = scenario.samples.part("summary");
    let steps = scenario.samples.part("step");
    let full = figure::CPU_US_PER_FULL_TRANSACTION.name;
    let resumed = figure::CPU_US_PER_RESUMED_TRANSACTION.name;
    let about = ("tps-ramp-resumed", "What does a resumed handshake cost the server?");
    let mut dear = bars(&once(&summary, resumed), about, &[(resumed, "")]);
    dear.note = dearer_than_full(&summary);
    let about = ("tps-ramp-full", "What does a full handshake cost the server?");
    vec![
        points(&summary, &steps),
        ramps(&steps),
        bars(&once(&summary, full), about, &[(full, "")]),
        dear,
        on_wire(&summary, "full", figure::WIRE_BYTES_PER_FULL_HANDSHAKE.name),
        on_wire(&summary, "resumed", figure::WIRE_BYTES_PER_RESUMED_HANDSHAKE.name),
    ]
}

/// The number of bytes a handshake of this kind takes.
fn on_wire(summary: &Samples, kind: &str, figure: &str) -> Chart {
    let name = format!("tps-ramp-wire-{kind}");
    let question = format!("How many bytes go over the wire for a {kind} handshake?");
    bars(&once(summary, figure), (&name, &question), &[(figure, "")])
}

/// The cost of a handshake is told from all mixes at once and noted with each; taken twice, one round would look like two.
fn once<'a>(summary: &Samples<'a>, figure: &str) -> Samples<'a> {
    let samples = summary.having(figure);
    match samples.values("k").first() {
        Some(k) => samples.at("k", k),
        None => samples,
    }
}

/// Why a resumed handshake may cost more than a full one, where it does.
fn dearer_than_full(summary: &Samples) -> String {
    let axis = Axis::of_figure(figure::CPU_US_PER_FULL_TRANSACTION.name);
    let dearer = summary.subjects().into_iter().filter_map(|subject| {
        let own = summary.subject(subject);
        let full = own.estimate(figure::CPU_US_PER_FULL_TRANSACTION.name)?.median;
        let resumed = own.estimate(figure::CPU_US_PER_RESUMED_TRANSACTION.name)?.median;
        let paid = axis.exactly(resumed);
        let saved = axis.exactly(full);
        (resumed > full).then(|| format!("{subject} ({paid} against {saved})"))
    });
    let dearer: Vec<String> = dearer.collect();
    if dearer.is_empty() {
        return String::new();
    }
    format!(
        "Dearer than a full handshake with {}. That is possible: in TLS 1.3 a resumed handshake still exchanges keys and opens a \
         ticket, and saves the server only the signature, which costs little with a P-256 key. Besides, the two are told apart by \
         least squares over all steps, so a difference of some per cent proves nothing.",
        conclusion::joined(&dearer)
    )
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
    let mut chart =
        Chart::new("tps-ramp-steps", "What happens as more is asked than can be done?", parts);
    chart.is_wide = true;
    chart.note = "Above: transactions attempted, successful and failed; successful bends away where the server is full. What is \
                  neither successful nor failed still waited when the step ended. Below: latency from the moment a transaction was due."
        .to_owned();
    chart
}

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
        let rates = values(&[figure::ATTEMPTED_PER_SECOND.name]).copied().fold(0.0, f64::max);
        let latencies = values(&[figure::MEAN_US.name, figure::P99_US.name])
            .copied()
            .filter(|value| *value > 0.0);
        let (low, high) = latencies
            .fold((1e5, 5e5), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
        Self { rates: vec![0.0, rates], latencies: vec![low, high] }
    }
}

fn ramp(samples: &Samples, subject: &str, ends: &Ends) -> Plot {
    let own = Style::of(subject).unmarked();
    let curve = |name: &str, style, figure| Curve {
        name: name.to_owned(),
        style: Style { stroke: look_stroke(name), ..style },
        points: samples.along("rate", figure),
    };
    let above = [
        curve("successful", own, figure::SUCCEEDED_PER_SECOND.name),
        curve("attempted", Style::ASKED, figure::ATTEMPTED_PER_SECOND.name),
        curve("failed", Style::FAILED, figure::FAILED_PER_SECOND.name),
    ];
    let below = [curve("mean", own, figure::MEAN_US.name), curve("p99", own, figure::P99_US.name)];
    let full = |curves: &[Curve]| -> Vec<Curve> {
        curves.iter().filter(|curve| !curve.points.is_empty()).cloned().collect()
    };
    let bounds = vec![(1e5, "100 ms".to_owned()), (5e5, "500 ms".to_owned())];
    let axis = |label, unit, kind, includes: &[f64]| Axis {
        includes: includes.to_vec(),
        ..Axis::new(label, unit, kind)
    };
    let rate = axis("Transactions", "1/s", ScaleKind::Linear, &ends.rates);
    let latency = axis("Latency", "µs", ScaleKind::Log10, &ends.latencies);
    let x = axis("Attempted", "1/s", ScaleKind::Linear, &ends.rates);
    let below = Panel { guides: bounds, ..Panel::new(latency, full(&below)) };
    Plot::new(x, vec![Panel::new(rate, full(&above)), below])
}

/// Rates that were asked for are dashed, the higher of two latencies dotted.
fn look_stroke(name: &str) -> &'static str {
    match name {
        "attempted" => "p-write",
        "p99" => "p-sendfile",
        _ => "p-user",
    }
}

/// Bernat's points: so many transactions with a mean of at most 100 ms, more with 500 ms, most at all.
fn points(summary: &Samples, steps: &Samples) -> Chart {
    let samples = summary.having(figure::TPS_MAX.name);
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
    let parts = vec![Part::new("", picture)];
    let mut chart = Chart::new("tps-ramp-points", "How many new connections can be taken?", parts);
    chart.is_wide = true;
    chart.conclusion = leaders(&samples, steps);
    chart.note = "The number is where the first part of the bar ends: what is done with a mean latency of at most 100 ms. \
                  Rates are tried in steps: the true value lies between the one shown and the next step that was tried."
        .to_owned();
    chart.table = all_points(&samples, steps);
    chart
}

fn nested(samples: &Samples, subject: &str) -> Bar {
    let estimate = |figure| samples.estimate(figure);
    let mut ends: Vec<f64> =
        [figure::TPS_MEAN_100MS.name, figure::TPS_MEAN_500MS.name, figure::TPS_MAX.name]
            .iter()
            .map(|figure| estimate(figure).map_or(0.0, |estimate| estimate.median))
            .collect();
    // Noise may put a stricter point above a laxer one, which cannot be: what held 100 ms held 500 ms.
    ends.sort_by(f64::total_cmp);
    let style = Style { marker: Marker::None, ..Style::of(subject) };
    Bar { label: subject.to_owned(), style, ends, interval: (0.0, 0.0) }
}

/// Names the subjects that take most, as far as the steps that were tried can tell.
fn leaders(samples: &Samples, steps: &Samples) -> String {
    let sentences = samples.facets(&[]).into_iter().filter_map(|(label, facet)| {
        let mut held: Vec<Held> = facet
            .subjects()
            .into_iter()
            .filter_map(|subject| Held::of(&facet, subject, steps))
            .collect();
        held.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        Some(super::led(&label, Some(&leader(&held)?)))
    });
    let sentences: Vec<String> = sentences.collect();
    if sentences.is_empty() {
        return String::new();
    }
    format!("New connections a second, with a mean wait of at most 100 ms. {}", sentences.join(" "))
}

/// The rate that a server held, and the next rate at which it was tried.
struct Held<'a> {
    subject: &'a str,
    rate: f64,
    next: Option<f64>,
    is_of_client: bool,
}

impl<'a> Held<'a> {
    fn of(facet: &Samples, subject: &'a str, steps: &Samples) -> Option<Self> {
        let own = facet.subject(subject);
        let rate = own.estimate(figure::TPS_MEAN_100MS.name)?.median;
        let point = &own.iter().next()?.point;
        let same =
            |step: &Sample| point.iter().all(|(axis, value)| step.point.get(axis) == Some(value));
        let tried = steps.subject(subject).only(same).values("rate").into_iter();
        let mut tried = tried.filter_map(|value| match value {
            Value::Number(rate) => Some(rate),
            Value::Word(_) => None,
        });
        let next = tried.find(|step| *step > rate * STEP_BEYOND);
        let is_of_client = own.iter().any(|sample| {
            sample.warnings.iter().any(|warning| warning.starts_with("The client gave way"))
        });
        Some(Self { subject, rate, next, is_of_client })
    }
}

fn leader(held: &[Held]) -> Option<String> {
    let best = held.first()?;
    let axis = Axis::of_figure(figure::TPS_MEAN_100MS.name);
    let rate = axis.exactly(best.rate);
    // A subject that was not tried above the leader's rate, or held it, is not known to take less.
    let reaches = |other: &&Held| other.next.is_none_or(|next| next > best.rate);
    let level: Vec<String> =
        held.iter().filter(reaches).map(|other| other.subject.to_owned()).collect();
    let next = best.next.map(|next| axis.exactly(next));
    let is_grid = held.iter().filter(|other| other.rate == best.rate).count() > 1;
    let step = match next {
        Some(next) if is_grid => {
            format!(
                " {rate} is a step of the ramp and not a measure of the servers; the next step was {next}."
            )
        }
        _ => String::new(),
    };
    let client = if best.is_of_client { " or more (the client gave way first)" } else { "" };
    if level.len() > 1 {
        let level = conclusion::joined(&level);
        return Some(format!("no difference can be told between {level}, {rate}{client}.{step}"));
    }
    let second = held
        .get(1)
        .map(|other| format!(", then {} with {}", other.subject, axis.exactly(other.rate)));
    Some(format!("{} takes most, {rate}{client}{}.", best.subject, second.unwrap_or_default()))
}

fn all_points(samples: &Samples, steps: &Samples) -> Table {
    let figures = [
        figure::TPS_MAX.name,
        figure::TPS_MEAN_100MS.name,
        figure::TPS_MEAN_500MS.name,
        figure::TPS_P99_100MS.name,
        figure::TPS_LOSS_0_1_PERCENT.name,
        figure::TPS_LOSS_0_01_PERCENT.name,
    ];
    let heads = figures.map(|figure| Axis::of_figure(figure).label);
    let heads = heads.into_iter().chain(["next step tried above a mean of 100 ms".to_owned()]);
    let mut table = Table::new(2, ["".to_owned(), "Server".to_owned()].into_iter().chain(heads));
    for (label, facet) in samples.facets(&[]) {
        for subject in facet.subjects() {
            let own = facet.subject(subject);
            let cells = figures.iter().map(|figure| {
                let estimate = own.estimate(figure);
                estimate.map_or("–".to_owned(), |e| Axis::of_figure(figure).exactly(e.median))
            });
            let next = Held::of(&facet, subject, steps).and_then(|held| held.next);
            let next = next.map_or("–".to_owned(), |n| {
                Axis::of_figure(figure::TPS_MEAN_100MS.name).exactly(n)
            });
            let row = [label.clone(), subject.to_owned()].into_iter().chain(cells);
            table.push(row.chain([next]));
        }
    }
    table
}

/// A step this much above what was held is another one.
const STEP_BEYOND: f64 = 1.005;
