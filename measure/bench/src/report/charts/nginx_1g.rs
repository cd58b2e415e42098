//! `nginx-1g`: every download as a dot, and the comparison that nginx's authors made with ministat.

use crate::figure;
use crate::report::axis::Axis;
use crate::report::chart::{Chart, Part, Picture};
use crate::report::conclusion;
use crate::report::dots::{DotRow, Dots};
use crate::report::gathered::ScenarioResults;
use crate::report::number;
use crate::report::sampling::Samples;
use crate::report::style::{self, Style};
use crate::report::table::Table;
use crate::stats::Estimate;
use crate::stats::comparison::SAMPLES_MIN;
use crate::stats::summary::Summary;
use crate::stats::welch::MeanDifference;

pub(super) fn charts(scenario: &ScenarioResults) -> Vec<Chart> {
    let figures = [
        (
            figure::GIGABYTES_PER_SECOND.name,
            "nginx-1g-throughput",
            "How fast is one large file sent?",
        ),
        (figure::CPU_SECONDS_PER_GIB.name, "nginx-1g-cpu", "What does a GiB cost the server?"),
    ];
    let mut charts = Vec::new();
    for (figure, name, question) in figures {
        let samples = scenario.samples.having(figure);
        for (label, samples) in samples.facets(&[]) {
            let name =
                if label.is_empty() { name.to_owned() } else { format!("{name}-{}", charts.len()) };
            let dots = Part::new("", Picture::Dots(dots(&samples, figure)));
            let mut chart = Chart::new(name, question, vec![dots]);
            let best = conclusion::compared(&samples, &[figure], None).unwrap_or_default();
            chart.conclusion =
                format!("{best} {}", against_user(&samples, figure)).trim().to_owned();
            chart.note = note(&label);
            chart.table = ministat(&samples, figure);
            if !samples.is_empty() {
                charts.push(chart);
            }
        }
    }
    charts
}

/// The question of nginx's authors: sending from the page cache through the kernel, against the process, of the same program.
fn against_user(samples: &Samples, figure: &str) -> String {
    let sentences = samples.subjects().into_iter().filter_map(|subject| {
        let program = subject.strip_suffix(" kernel-sendfile")?;
        let user = Summary::of(&samples.subject(&format!("{program} user")).rounds(figure))?;
        let own = Summary::of(&samples.subject(subject).rounds(figure))?;
        Some(format!("{subject} against user: {}.", difference(&own, &user)))
    });
    sentences.collect::<Vec<_>>().join(" ")
}

fn note(label: &str) -> String {
    let how = "A dot is a download, the line the median, the bar its 95 % interval.";
    if label.is_empty() { how.to_owned() } else { format!("{label}. {how}") }
}

fn dots(samples: &Samples, figure: &str) -> Dots {
    // Not from zero: what matters is how far apart the rounds are.
    let axis = Axis { includes: Vec::new(), ..Axis::of_figure(figure) };
    let rows = samples.subjects().into_iter().filter_map(|subject| {
        let values = samples.subject(subject).rounds(figure);
        let estimate = Estimate::of(&values)?;
        Some(DotRow { label: subject.to_owned(), style: Style::of(subject), values, estimate })
    });
    Dots { axis, rows: rows.collect() }
}

/// As ministat prints it, with the difference to the program's first subject that encrypts in the process.
fn ministat(samples: &Samples, figure: &str) -> Table {
    let unit = Axis::of_figure(figure).unit;
    // The figure that decides stands where it is seen without scrolling.
    let head = ["", "Difference at 95 % confidence", "N", "Min", "Max", "Median", "Avg", "Stddev"];
    let mut table = Table::new(
        2,
        head.map(|head| match head {
            "Median" | "Avg" => format!("{head}, {unit}"),
            head => head.to_owned(),
        }),
    );
    for subject in samples.subjects() {
        let values = samples.subject(subject).rounds(figure);
        let base = format!("{} user", style::program(subject));
        let base_values = samples.subject(&base).rounds(figure);
        let Some(own) = Summary::of(&values) else { continue };
        let against = Summary::of(&base_values).filter(|_| subject != base);
        let against = against.map_or("–".to_owned(), |other| difference(&own, &other));
        let numbers = [own.min, own.max, own.median, own.mean, own.deviation];
        let numbers = numbers.map(|value| number::digits_of(value, 4));
        let row = [subject.to_owned(), against, own.samples.to_string()].into_iter();
        table.push(row.chain(numbers));
    }
    table
}

/// The difference of the means as a part of the other's, with its interval.
fn difference(own: &Summary, other: &Summary) -> String {
    // Two of anything have a mean and a deviation, and nothing follows from them.
    let is_enough = own.samples.min(other.samples) >= SAMPLES_MIN;
    let found = MeanDifference::of(other, own).filter(|_| is_enough);
    let Some((found, [middle, low, high])) = found.and_then(|d| Some((d, d.relative?))) else {
        return "too few rounds".to_owned();
    };
    let half = number::percent((high - low) / 2.0);
    if !found.is_proven() {
        return format!("none proven (±{half})");
    }
    let sign = if middle > 0.0 { "+" } else { "\u{2212}" };
    format!("{sign}{} ± {half}", number::percent(middle.abs()))
}
