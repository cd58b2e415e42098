//! Latency by percentile, for every scenario whose samples have histograms.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

use crate::report::axis::{Axis, PERCENTILE};
use crate::report::chart::{Chart, Part, Picture};
use crate::report::plot::{Curve, Panel, Plot, PlotPoint};
use crate::report::sampling::Samples;
use crate::report::scale::ScaleKind;
use crate::report::style::Style;
use crate::report::table::Table;

/// The chart, if there is anything for it; ramps have theirs over the rate, and what was measured to find a load is no result.
pub(super) fn chart(scenario: &str, samples: &Samples) -> Option<Chart> {
    let samples = samples.only(|sample| sample.histogram.is_some() && sample.part.is_empty());
    let facets = spread(samples.facets(&[]));
    let mut parts = Vec::new();
    let mut table = Table::new(2, ["", "Server"].into_iter().chain(NAMED.map(|(_, name)| name)));
    for (label, facet) in facets {
        let whole: Vec<(&str, Histogram<u64>)> = facet
            .subjects()
            .into_iter()
            .filter_map(|subject| Some((subject, merged(&facet.subject(subject))?)))
            .collect();
        for (subject, histogram) in &whole {
            let cells = NAMED.map(|(at, _)| cell(histogram, at));
            table.push([label.clone(), (*subject).to_owned()].into_iter().chain(cells));
        }
        let curves = whole.iter().map(|(subject, histogram)| curve(subject, histogram));
        let curves: Vec<Curve> = curves.filter(|curve| !curve.points.is_empty()).collect();
        if !curves.is_empty() {
            parts.push(Part::new(label, Picture::Plot(plot(curves))));
        }
    }
    if parts.is_empty() {
        return None;
    }
    share_axes(&mut parts);
    let name = format!("{}-latency", crate::report::slug(scenario));
    let mut chart = Chart::new(name, "How long do the slowest wait?", parts);
    chart.note =
        "Each step to the right holds ten times fewer requests; all rounds together.".to_owned();
    chart.table = table;
    Some(chart)
}

fn plot(curves: Vec<Curve>) -> Plot {
    let named = NAMED.map(|(at, name)| (at, name.to_owned())).to_vec();
    let x = Axis { named, ..Axis::new(PERCENTILE, "", ScaleKind::Log10) };
    let y = Axis::new("Latency", "µs", ScaleKind::Log10);
    Plot::new(x, vec![Panel::new(y, curves)])
}

/// Gives all drawings the same ends, so that they can be compared.
fn share_axes(parts: &mut [Part]) {
    let plots = || {
        parts.iter().filter_map(|part| {
            if let Picture::Plot(plot) = &part.picture { Some(plot) } else { None }
        })
    };
    let curves = || plots().flat_map(|plot| &plot.panels).flat_map(|panel| &panel.curves);
    let points: Vec<PlotPoint> = curves().flat_map(|curve| curve.points.iter().copied()).collect();
    for part in parts {
        if let Picture::Plot(plot) = &mut part.picture {
            plot.x.includes = points.iter().map(|point| point.x).collect();
            for panel in &mut plot.panels {
                panel.y.includes = points.iter().map(|point| point.middle).collect();
            }
        }
    }
}

fn curve(subject: &str, histogram: &Histogram<u64>) -> Curve {
    let decades = (histogram.len() as f64).log10();
    // As many places as make the curve smooth, from the median up to the one request that waited longest.
    let last = ((decades - NAMED[0].0.log10()).max(0.0) * PER_DECADE) as u32;
    let points = (0..=last).map(|n| {
        let x = NAMED[0].0 * 10_f64.powf(f64::from(n) / PER_DECADE);
        let middle = histogram.value_at_quantile(1.0 - 1.0 / x) as f64;
        PlotPoint { x, low: middle, middle, high: middle }
    });
    Curve {
        name: subject.to_owned(),
        style: Style::of(subject).unmarked(),
        points: points.collect(),
    }
}

/// Returns the cell of a percentile, if there were enough requests to tell.
fn cell(histogram: &Histogram<u64>, at: f64) -> String {
    if at > histogram.len() as f64 {
        return "–".to_owned();
    }
    Axis::new("", "µs", ScaleKind::Linear)
        .exactly(histogram.value_at_quantile(1.0 - 1.0 / at) as f64)
}

/// The histograms of all rounds added up; what cannot be read is left out.
fn merged(samples: &Samples) -> Option<Histogram<u64>> {
    let mut whole: Option<Histogram<u64>> = None;
    for encoded in samples.iter().filter_map(|sample| sample.histogram.as_deref()) {
        let Ok(bytes) = STANDARD.decode(encoded) else { continue };
        let Ok(one) = Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice()) else {
            continue;
        };
        match &mut whole {
            // It can only fail for values beyond what the sum may hold.
            Some(sum) => _ = sum.add(&one),
            None => whole = Some(one),
        }
    }
    whole.filter(|histogram| !histogram.is_empty())
}

/// As many facets as are seen at a glance, from the first to the last.
fn spread(facets: Vec<(String, Samples)>) -> Vec<(String, Samples)> {
    let count = facets.len();
    if count <= FACETS_MAX {
        return facets;
    }
    let kept = |index: usize| (0..FACETS_MAX).any(|n| n * (count - 1) / (FACETS_MAX - 1) == index);
    facets
        .into_iter()
        .enumerate()
        .filter(|(index, _)| kept(*index))
        .map(|(_, facet)| facet)
        .collect()
}

/// Percentiles by how many requests there are to one beyond them.
const NAMED: [(f64, &str); 6] = [
    (2.0, "50 %"),
    (10.0, "90 %"),
    (100.0, "99 %"),
    (1e3, "99.9 %"),
    (1e4, "99.99 %"),
    (1e5, "99.999 %"),
];
const PER_DECADE: f64 = 20.0;
const FACETS_MAX: usize = 6;
