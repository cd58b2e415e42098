//! `web-sizes`: where the kernel becomes cheaper than the process, and whether `auto` finds the cheaper one.

use super::{has_content, multiples, over, sized};
use crate::report::axis::Axis;
use crate::report::chart::{Chart, Part, Picture, Span};
use crate::report::finding::{self, Crossing};
use crate::report::gathered::Scene;
use crate::report::look::{self, Look};
use crate::report::plot::{Curve, Mark, Panel, Plot};
use crate::report::sampling::Samples;

pub(super) fn charts(scene: &Scene) -> Vec<Chart> {
    let samples = &scene.samples;
    let mut ratio = relative(
        samples,
        ("web-sizes-ratio", "Which path costs least, by size of body?"),
        "cpu_ns_per_request",
    );
    ratio.span = Span::Full;
    let by_size =
        |name, question, y: Axis, figure| over(samples, (name, question), "size", &y, figure);
    let axis = Axis::of_figure;
    let (cpu, rate) = ("cpu_ns_per_request", "requests_per_second");
    let (through, calls) = ("gigabits_per_second", "calls_per_request");
    vec![
        ratio,
        among_servers(samples, cpu),
        by_size("web-sizes-throughput", "How much is sent?", axis(through), through),
        by_size(
            "web-sizes-cpu",
            "What does a request cost the server?",
            axis(cpu).by_ratios(),
            cpu,
        ),
        by_size("web-sizes-rate", "How many requests are answered?", axis(rate).by_ratios(), rate),
        by_size(
            "web-sizes-calls",
            "How many system calls does a request take?",
            axis(calls).by_ratios(),
            calls,
        ),
    ]
}

/// All subjects as multiples of the first that encrypts in its process: where absolute costs over four decades hide what differs.
fn among_servers(samples: &Samples, figure: &str) -> Chart {
    let samples = samples.having(figure);
    let subjects = samples.subjects();
    let base =
        subjects.iter().find(|subject| look::way(subject) == "user").copied().unwrap_or_default();
    let parts = samples.facets(&["size"]).into_iter().map(|(label, samples)| {
        let own = samples.subject(base);
        let curves = samples.subjects().into_iter().map(|subject| Curve {
            name: subject.to_owned(),
            look: Look::of(subject),
            points: samples.subject(subject).along_relative("size", figure, &own),
        });
        let curves = curves.filter(|curve| !curve.points.is_empty()).collect();
        let y = multiples(&format!("Server CPU per request, {base} = 1"));
        let panel = Panel { y, curves, guides: vec![(1.0, String::new())], envelope: Vec::new() };
        let plot = Plot { x: Axis::of_point("size"), panels: vec![panel], marks: Vec::new() };
        Part::new(label, Picture::Plot(plot))
    });
    let parts = parts.filter(|part| has_content(&part.picture)).collect();
    sized("web-sizes-servers", "How do the servers compare, by size of body?", parts)
}

/// Each program's paths as multiples of its own user path.
pub(super) fn relative(samples: &Samples, (name, question): (&str, &str), figure: &str) -> Chart {
    let samples = samples.having(figure).only(|sample| !sample.subject.ends_with(" plain"));
    let mut programs: Vec<&str> = samples.subjects().into_iter().map(look::program).collect();
    programs.dedup();
    let (mut parts, mut findings) = (Vec::new(), Vec::new());
    for program in programs {
        let own = samples.only(|sample| look::program(&sample.subject) == program);
        for (label, samples) in own.facets(&["size"]) {
            let label =
                if label.is_empty() { program.to_owned() } else { format!("{program} · {label}") };
            let Some((plot, finding)) = paths(&samples, program, figure) else { continue };
            if !finding.is_empty() {
                findings.push(format!("{label}: {finding}."));
            }
            parts.push(Part::new(label, Picture::Plot(plot)));
        }
    }
    let mut chart = sized(name, question, parts);
    chart.panels.retain(|part| has_content(&part.picture));
    chart.finding = findings.join(" ");
    chart.note = "Below 1× is cheaper than encrypting in the process. The broad band is the best fixed path at each size."
        .to_owned();
    chart
}

fn paths(samples: &Samples, program: &str, figure: &str) -> Option<(Plot, String)> {
    let base = samples.subject(&format!("{program} user"));
    let x = Axis::of_point("size");
    let curves: Vec<Curve> = samples
        .subjects()
        .into_iter()
        .map(|subject| Curve {
            name: look::way(subject).to_owned(),
            look: Look::of(subject),
            points: samples.subject(subject).along_relative("size", figure, &base),
        })
        .filter(|curve| !curve.points.is_empty())
        .collect();
    // Without the kernel there is no choice to show.
    if !curves.iter().any(|curve| curve.name.starts_with("kernel")) {
        return None;
    }
    let fixed: Vec<&Curve> = curves.iter().filter(|curve| curve.name != "auto").collect();
    let best = finding::envelope(&fixed);
    let less =
        if figure.starts_with("cpu") { "is cheaper than user" } else { "takes less than user" };
    let mut marks = Vec::new();
    let mut sentences = Vec::new();
    for curve in fixed.iter().filter(|curve| curve.name != "user") {
        match finding::crossing(&curve.points) {
            Crossing::From(at) => {
                let at_size = x.roughly(at);
                sentences.push(format!("{} {less} from about {at_size}", curve.name));
                let label = format!("{} from {at_size}", curve.name);
                marks.push(Mark { x: at, label, look: curve.look });
            }
            Crossing::Always => sentences.push(format!("{} {less} at every size", curve.name)),
            Crossing::Never => {
                sentences.push(format!("{} is not below user at the largest size", curve.name))
            }
        }
    }
    let auto = curves.iter().find(|curve| curve.name == "auto" && fixed.len() > 1);
    sentences.extend(
        auto.and_then(|auto| Some(format!("auto {}", finding::nearness(auto, &best, &x)?))),
    );
    let envelope = if fixed.len() > 1 { best } else { Vec::new() };
    let y = multiples(&format!("{}, user path = 1", Axis::of_figure(figure).label));
    let panel = Panel { y, curves, guides: vec![(1.0, String::new())], envelope };
    Some((Plot { x, panels: vec![panel], marks }, sentences.join("; ")))
}
