//! Which charts each scenario has.

pub mod generic;
mod latency;
mod nginx_1g;
mod single;
mod steady;
mod tps_ramp;
mod web_sizes;

use super::axis::Axis;
use super::bars::{Bar, Bars, Group};
use super::chart::{Chart, Part, Picture};
use super::conclusion;
use super::gathered::ScenarioResults;
use super::plot::{Panel, Plot};
use super::sampling::{Samples, describe};
use super::scale::ScaleKind;
use super::speech;
use super::style::Style;
use crate::results::Value;

/// The form of a scenario on the page.
type Charted = (&'static str, &'static str, fn(&ScenarioResults) -> Vec<Chart>);

/// Each scenario with the question it answers and its charts.
const CHARTED: &[Charted] = &[
    ("nginx-1g", "What does sending one large file cost?", nginx_1g::charts),
    ("web-sizes", "When is the kernel cheaper than the process?", web_sizes::charts),
    ("streaming", "What does the same stream cost each server?", steady::streaming),
    (
        "tps-ramp",
        "How many new connections can be taken, and how fast are they answered?",
        tps_ramp::charts,
    ),
    ("idle-memory", "How much memory does a waiting connection hold?", steady::idle_memory),
    ("mixed", "Do new connections disturb those that are being served?", steady::mixed),
    (
        "ktls-setup",
        "From which size does the kernel pay for a connection that closes at once?",
        single::ktls_setup,
    ),
    ("ciphers", "What does a byte cost, by cipher suite and path?", single::ciphers),
    ("cached", "What does a kept response cost, and who waits for one?", single::cached),
    ("proxy", "What does it cost to pass a backend's answers on?", single::proxy),
    ("growth", "What does a request cost the more there is?", single::growth),
    ("work", "How much work is done for a request?", single::work),
];

fn charted(scenario: &ScenarioResults) -> Option<&'static Charted> {
    CHARTED.iter().find(|(name, ..)| *name == scenario.name)
}

/// The question a scenario answers, as its heading.
pub fn question(scenario: &ScenarioResults) -> &'static str {
    charted(scenario).map_or("", |(_, question, _)| question)
}

pub fn charts(scenario: &ScenarioResults) -> Vec<Chart> {
    let mut charts = charted(scenario).map_or_else(Vec::new, |(_, _, charts)| charts(scenario));
    charts.retain(|chart| !chart.panels.is_empty());
    for chart in &mut charts {
        leave_out_zeros(chart);
    }
    charts.extend(latency::chart(scenario.name, &scenario.samples));
    for chart in &mut charts {
        if scenario.is_work {
            chart.note = format!("Instructions, not time. {}", chart.note).trim_end().to_owned();
        }
    }
    charts
}

/// Nothing is drawn of zeros alone: a sentence says it.
fn leave_out_zeros(chart: &mut Chart) {
    let is_zero = |part: &Part| !part.picture.has_values();
    let zeros: Vec<String> =
        chart.panels.iter().filter(|part| is_zero(part)).map(Part::title).collect();
    chart.panels.retain(|part| !is_zero(part));
    if chart.panels.is_empty() {
        chart.conclusion = "None, with every server.".to_owned();
        chart.note.clear();
    } else if !zeros.is_empty() {
        chart.note =
            format!("{} Not drawn, since all is 0: {}.", chart.note, conclusion::joined(&zeros));
    }
}

/// Curves of a figure over an axis, with a drawing for each facet.
fn over(samples: &Samples, about: (&str, &str), axis: &str, figure: &str) -> Chart {
    over_on(samples, about, axis, &Axis::of_figure(figure), figure)
}

/// The same, divided by ratios.
fn ratios(samples: &Samples, about: (&str, &str), axis: &str, figure: &str) -> Chart {
    over_on(samples, about, axis, &Axis::of_figure(figure).by_ratios(), figure)
}

fn over_on(
    samples: &Samples,
    (name, question): (&str, &str),
    axis: &str,
    y: &Axis,
    figure: &str,
) -> Chart {
    let samples = samples.having(figure);
    let parts = samples.facets(&[axis]).into_iter().map(|(label, samples)| {
        let panel = Panel::new(y.clone(), samples.curves(axis, figure));
        Part::new(label, Picture::Plot(Plot::new(Axis::of_point(axis), vec![panel])))
    });
    let mut chart = Chart::new(name, question, parts.collect());
    chart.conclusion = at_most(&samples, axis, figure);
    chart
}

/// Says how the subjects compare at the largest value of an axis.
fn at_most(samples: &Samples, axis: &str, figure: &str) -> String {
    let samples = samples.having(figure);
    let facets = samples.facets(&[axis]);
    let Some((label, facet)) = facets.first() else { return String::new() };
    let largest = facet.values(axis).pop();
    let there = largest.as_ref().map_or_else(|| facet.clone(), |value| facet.at(axis, value));
    let place = largest.filter(|_| facet.values(axis).len() > 1);
    let place = place.map(|value| match axis {
        "size" => format!("for {}", describe(axis, &value)),
        "flood" => format!("with {}", describe(axis, &value)),
        _ => format!("at {}", describe(axis, &value)),
    });
    let label = Some(label.clone()).filter(|label| !label.is_empty());
    let lead: Vec<String> = label.into_iter().chain(place).collect();
    led(&lead.join(", "), conclusion::compared(&there, &[figure], None).as_deref())
}

/// A sentence with what it holds for before it.
fn led(lead: &str, sentence: Option<&str>) -> String {
    match (lead, sentence) {
        (_, None) => String::new(),
        ("", Some(sentence)) => sentence.to_owned(),
        (lead, Some(sentence)) => {
            format!("{}: {}", speech::capital(lead), speech::small(sentence))
        }
    }
}

/// Bars of figures that add up, or of one, with a group for each facet.
fn bars(samples: &Samples, (name, question): (&str, &str), figures: &[(&str, &str)]) -> Chart {
    let Some((first, _)) = figures.first() else { return Chart::default() };
    let samples = samples.having(first);
    let facets = samples.facets(&[]);
    let groups = facets.iter().map(|(label, samples)| {
        let bars = samples.subjects().into_iter();
        let bars = bars.filter_map(|subject| bar(&samples.subject(subject), subject, figures));
        Group { label: label.clone(), bars: bars.collect() }
    });
    let groups: Vec<Group> = groups.filter(|group| !group.bars.is_empty()).collect();
    let has_parts = figures.iter().skip(1).any(|(figure, _)| !samples.having(figure).is_empty());
    let parts = figures.iter().map(|(_, part)| (*part).to_owned());
    let picture = Picture::Bars(Bars {
        axis: Axis::of_figure(first),
        parts: if has_parts { parts.collect() } else { Vec::new() },
        groups,
        value_is_first: false,
    });
    let mut chart = Chart::new(name, question, vec![Part::new("", picture)]);
    let names: Vec<&str> = figures.iter().map(|(figure, _)| *figure).collect();
    // One group stands for all: the largest of quantities, the first of words.
    let is_by_words = samples.iter().any(|sample| {
        let mut axes = sample.point.iter();
        axes.any(|(axis, value)| matches!(value, Value::Word(_)) && samples.values(axis).len() > 1)
    });
    if let Some((label, typical)) = if is_by_words { facets.first() } else { facets.last() } {
        let best = conclusion::compared(typical, &names, None);
        chart.conclusion = led(if facets.len() > 1 { label } else { "" }, best.as_deref());
    }
    chart
}

fn bar(samples: &Samples, subject: &str, figures: &[(&str, &str)]) -> Option<Bar> {
    let mut ends = Vec::new();
    let mut interval = (0.0, 0.0);
    for (figure, _) in figures {
        let before = ends.last().copied().unwrap_or(0.0);
        let Some(estimate) = samples.estimate(figure) else { continue };
        interval = (before + estimate.low, before + estimate.high);
        ends.push(before + estimate.median.max(0.0));
    }
    let style = Style::of(subject);
    (!ends.is_empty()).then(|| Bar { label: subject.to_owned(), style, ends, interval })
}

/// Gives the bars of a chart another axis than that of their first figure.
fn on_axis(mut chart: Chart, axis: &Axis) -> Chart {
    for part in &mut chart.panels {
        if let Picture::Bars(bars) = &mut part.picture {
            bars.axis = axis.clone();
        }
    }
    chart
}

/// An axis of multiples of something, with one in it.
fn multiples(label: &str) -> Axis {
    Axis { includes: vec![1.0], ..Axis::new(label, "×", ScaleKind::Log10) }
}
