//! `web-sizes`: where the kernel becomes cheaper than the process, and whether `auto` finds the cheaper one.

use super::{multiples, over, ratios};
use crate::figure;
use crate::report::axis::Axis;
use crate::report::chart::{Chart, Part, Picture};
use crate::report::conclusion;
use crate::report::gathered::ScenarioResults;
use crate::report::plot::{Curve, Mark, Panel, Plot};
use crate::report::sampling::{Samples, describe};
use crate::report::speech;
use crate::report::style::{self, Style};
use crate::report::table::Table;
use crate::results::Value;

pub(super) fn charts(scenario: &ScenarioResults) -> Vec<Chart> {
    let samples = &scenario.samples;
    let by_size = |name, question, figure| ratios(samples, (name, question), "size", figure);
    let cpu = figure::CPU_NS_PER_REQUEST.name;
    let rate = figure::REQUESTS_PER_SECOND.name;
    let through = figure::GIGABITS_PER_SECOND.name;
    let calls = figure::CALLS_PER_REQUEST.name;
    let about = ("web-sizes-ratio", "Which path costs least, by size of body?");
    vec![
        relative(samples, about, cpu),
        among_servers(samples, cpu),
        over(samples, ("web-sizes-throughput", "How much is sent?"), "size", through),
        by_size("web-sizes-cpu", "What does a request cost the server?", cpu),
        by_size("web-sizes-rate", "How many requests are answered?", rate),
        by_size("web-sizes-calls", "How many system calls does a request take?", calls),
    ]
}

/// All subjects as multiples of the first that encrypts in its process: where absolute costs over four decades hide what differs.
fn among_servers(samples: &Samples, figure: &str) -> Chart {
    let samples = samples.having(figure);
    let subjects = samples.subjects();
    let base =
        subjects.iter().find(|subject| style::way(subject) == "user").copied().unwrap_or_default();
    let parts = samples.facets(&["size"]).into_iter().map(|(label, samples)| {
        let own = samples.subject(base);
        let curves = samples.subjects().into_iter().map(|subject| Curve {
            name: subject.to_owned(),
            style: Style::of(subject),
            points: samples.subject(subject).along_relative("size", figure, &own),
        });
        let curves = curves.filter(|curve| !curve.points.is_empty()).collect();
        let y = multiples(&format!("Server CPU per request, {base} = 1"));
        let panel = Panel { guides: vec![(1.0, String::new())], ..Panel::new(y, curves) };
        Part::new(label, Picture::Plot(Plot::new(Axis::of_point("size"), vec![panel])))
    });
    let question = "How do the servers compare, by size of body?";
    let mut chart = Chart::new("web-sizes-servers", question, parts.collect());
    chart.conclusion = by_size(&samples, figure);
    chart
}

/// A sentence for the smallest and one for the largest body.
fn by_size(samples: &Samples, figure: &str) -> String {
    let sizes = samples.values("size");
    let ends = [sizes.first(), sizes.last().filter(|_| sizes.len() > 1)];
    let sentences = ends.into_iter().flatten().filter_map(|size| {
        let purpose = format!("for a {} file", describe("size", size));
        conclusion::compared(&samples.at("size", size), &[figure], Some(&purpose))
    });
    sentences.collect::<Vec<_>>().join(" ")
}

/// Each program's paths as multiples of its own user path.
pub(super) fn relative(samples: &Samples, (name, question): (&str, &str), figure: &str) -> Chart {
    let samples = samples.having(figure).only(|sample| style::way(&sample.subject) != "plain");
    let mut parts = Vec::new();
    let mut answers = Table::default();
    for (label, program, samples) in programs(&samples) {
        let Some(plot) = paths(&samples, program, figure) else { continue };
        answer(&mut answers, &label, &samples, figure);
        parts.push(Part::new(label, Picture::Plot(plot)));
    }
    let mut chart = Chart::new(name, question, parts);
    chart.is_wide = true;
    chart.answers = answers;
    chart.note = "Below 1× is cheaper than encrypting in the process. The broad band is the best fixed path at each size."
        .to_owned();
    chart
}

/// Each program with each of its facets, and what it is called.
pub(super) fn programs<'a>(samples: &Samples<'a>) -> Vec<(String, &'a str, Samples<'a>)> {
    let mut names: Vec<&str> = samples.subjects().into_iter().map(style::program).collect();
    names.dedup();
    let mut found = Vec::new();
    for program in names {
        let own = samples.only(|sample| style::program(&sample.subject) == program);
        for (label, samples) in own.facets(&["size"]) {
            let label =
                if label.is_empty() { program.to_owned() } else { format!("{program}, {label}") };
            found.push((label, program, samples));
        }
    }
    found
}

/// Which fixed path is cheapest at each size and by how much, and how near `auto` comes to it.
pub(super) fn answer(table: &mut Table, label: &str, samples: &Samples, figure: &str) {
    let sizes = samples.values("size");
    if table.head.is_empty() {
        let names = sizes.iter().map(|size| describe("size", size));
        *table = Table::new(1, [String::new()].into_iter().chain(names));
    }
    let cost = |subject: &str, size: &Value| {
        samples.subject(subject).at("size", size).estimate(figure).map(|estimate| estimate.median)
    };
    let subjects = samples.subjects();
    let is_fixed = |subject: &&&str| style::way(subject) != "auto";
    let cheapest = |size: &Value| {
        let costs = subjects.iter().filter(is_fixed);
        let costs = costs.filter_map(|subject| Some((*subject, cost(subject, size)?)));
        costs.min_by(|(_, a), (_, b)| a.total_cmp(b))
    };
    let cells = sizes.iter().map(|size| {
        let Some((subject, least)) = cheapest(size) else { return "–".to_owned() };
        let user = cost(&format!("{} user", style::program(subject)), size);
        match user.filter(|user| *user > least) {
            Some(user) => format!("{} ({}×)", style::way(subject), speech::multiple(least / user)),
            None => style::way(subject).to_owned(),
        }
    });
    let width = table.head.len();
    let mut push = |name: String, cells: Vec<String>| {
        let mut row: Vec<String> = [name].into_iter().chain(cells).collect();
        row.resize(width, "–".to_owned());
        table.push(row);
    };
    push(format!("{label}: cheapest fixed path, as a multiple of user"), cells.collect());
    let Some(auto) = subjects.iter().find(|subject| !is_fixed(subject)) else { return };
    let cells = sizes.iter().map(|size| {
        let least = cheapest(size).map(|(_, least)| least);
        let ratio = cost(auto, size).zip(least).map(|(auto, least)| auto / least);
        ratio.map_or("–".to_owned(), |ratio| format!("{}×", speech::multiple(ratio)))
    });
    push(format!("{label}: auto, as a multiple of that path"), cells.collect());
}

fn paths(samples: &Samples, program: &str, figure: &str) -> Option<Plot> {
    let base = samples.subject(&format!("{program} user"));
    let x = Axis::of_point("size");
    let curves: Vec<Curve> = samples
        .subjects()
        .into_iter()
        .map(|subject| Curve {
            name: style::way(subject).to_owned(),
            style: Style::of(subject),
            points: samples.subject(subject).along_relative("size", figure, &base),
        })
        .filter(|curve| !curve.points.is_empty())
        .collect();
    // Without the kernel there is no choice to show.
    if !curves.iter().any(|curve| curve.name.starts_with("kernel")) {
        return None;
    }
    let fixed: Vec<&Curve> = curves.iter().filter(|curve| curve.name != "auto").collect();
    let best = conclusion::envelope(&fixed);
    let marks = fixed.iter().filter(|curve| curve.name != "user").filter_map(|curve| {
        let at = conclusion::crossing(&curve.points)?;
        let label = format!("{} from {}", curve.name, x.roughly(at));
        Some(Mark { x: at, label, style: curve.style })
    });
    let marks = marks.collect();
    let envelope = if fixed.len() > 1 { best } else { Vec::new() };
    let y = multiples(&format!("{}, user path = 1", Axis::of_figure(figure).label));
    let panel = Panel { y, curves, guides: vec![(1.0, String::new())], envelope };
    Some(Plot { x, panels: vec![panel], marks })
}
