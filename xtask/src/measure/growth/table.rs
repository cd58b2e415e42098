//! The table of docs/performance.md.

use super::super::rounds::{Rounds, estimate, judged, ratio, shown};
use super::record::Sample;
use super::server::Program;
use super::{ROWS, Row};

/// The figures of a sample: its part, its name, its name in the table, and its factor.
const TOLD: &[(&str, &str, &str, f64)] = &[
    ("", "cpu_us_per_transaction", "request (µs)", 1.0),
    ("", "body_bytes", "bytes of its body", 1.0),
    ("paced", "cpu_us_per_second", "second of one of them (µs)", 1.0),
    ("paced", "memory_bytes", "memory for all of them (MiB)", 1.0 / 1_048_576.0),
    ("fill", "cpu_us_per_transaction", "fill (µs)", 1.0),
    ("fill", "kept_share", "kept of them at once (%)", 100.0),
    ("fill", "memory_bytes", "memory for all of them (MiB)", 1.0 / 1_048_576.0),
    (
        "grows",
        "p999_us",
        "wait that one in 1,000 of another client exceeds while they come (ms)",
        1e-3,
    ),
    ("grown", "p999_us", "the same once they are there (ms)", 1e-3),
    ("grows", "max_us", "longest wait of another client while they come (ms)", 1e-3),
    ("grown", "max_us", "longest wait of another client once they are there (ms)", 1e-3),
    ("", "start_ms", "start (ms)", 1.0),
    ("", "reload_ms", "reload (ms)", 1.0),
    ("", "reload_cpu_ms", "processor time of a reload (ms)", 1.0),
    ("", "max_us", "longest wait of another client in a reload (ms)", 1e-3),
];

pub fn render(samples: &[Sample]) -> String {
    let mut lines = vec![
        "| there are | a | kettle | nginx | ratio | aim |".to_owned(),
        "|---|---|--:|--:|--:|--:|".to_owned(),
    ];
    for row in ROWS {
        for told in TOLD {
            let last = row.numbers.last();
            for number in row.numbers {
                let aim = row.aim.filter(|_| Some(number) == last && told.1.starts_with("cpu"));
                let values = [Program::Kettle, Program::Nginx]
                    .map(|program| values(samples, (row, *number), program, told));
                lines.extend(line(
                    &format!("{} {}", grouped(*number), row.name),
                    told.2,
                    values,
                    aim,
                ));
            }
        }
        lines.extend(row.growth.and_then(|growth| grown(samples, row, growth)));
    }
    lines.join("\n") + "\n"
}

fn values(
    samples: &[Sample],
    (row, number): (&Row, u64),
    program: Program,
    (part, figure, _, times): &(&str, &str, &str, f64),
) -> Rounds {
    let is_meant = |sample: &&Sample| {
        sample.subject == program.subject()
            && sample.part == *part
            && sample.point.what == row.name
            && sample.point.number == number
    };
    let samples = samples.iter().filter(is_meant);
    samples.filter_map(|it| Some((it.round, it.figures.get(*figure)? * times))).collect()
}

fn line(what: &str, told: &str, [kettle, nginx]: [Rounds; 2], aim: Option<f64>) -> Option<String> {
    let both = ratio(&kettle, &nginx);
    let is_empty = kettle.is_empty() && nginx.is_empty();
    let [first, second] = [kettle, nginx].map(|it| shown(estimate(&it)));
    let (both, aim) = (shown(both), judged(aim, both, ""));
    (!is_empty).then(|| format!("| {what} | {told} | {first} | {second} | {both} | {aim} |"))
}

/// The number of times as much a request costs at the second number as at the first.
fn grown(samples: &[Sample], row: &Row, (from, to, most): (u64, u64, f64)) -> Option<String> {
    let told = TOLD.first()?;
    let [kettle, nginx] = [Program::Kettle, Program::Nginx].map(|program| {
        let [few, many] = [from, to].map(|number| values(samples, (row, number), program, told));
        ratio(&many, &few)
    });
    let what = row.name;
    let aim = judged(Some(most), kettle, "");
    let ([first, second], [from, to]) = ([kettle, nginx].map(shown), [from, to].map(grouped));
    kettle.map(|_| format!("| {what} | {to} ÷ {from} | {first} | {second} | | {aim} |"))
}

/// `1,000,000`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}
