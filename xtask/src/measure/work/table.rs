//! The work as tables for people.

use std::collections::{BTreeMap, BTreeSet};

use super::servers::MeasuredServer;
use super::vector::{Vector, mean};

/// All tables of the vectors, each under its sentence.
pub fn all(vectors: &[Vector], servers: &[&MeasuredServer]) -> String {
    let mut text = String::new();
    for (erms, title) in [(true, "with"), (false, "without")] {
        let counted = in_thousands(vectors, servers, erms);
        text.push_str(&format!(
            "Thousands of instructions as the emulator counts them, {title} fast string copies:\n\n{counted}\n\n"
        ));
    }
    for (erms, title) in [(true, "with"), (false, "without")] {
        let work = work(vectors, servers, erms);
        text.push_str(&format!(
            "The work of one more request, {title} fast string copies:\n\n{work}\n\n"
        ));
    }
    text
}

/// Instructions by the process clock: all servers by all sizes, and what kettle's own choice is measured by.
fn in_thousands(vectors: &[Vector], servers: &[&MeasuredServer], erms: bool) -> String {
    let bodies = bodies(vectors);
    let thousands = |server: &str, bytes| {
        mean(vectors, server, bytes, erms, "counted_instructions_per_request")
            .map(|instructions| instructions / 1000.0)
    };
    let mut lines = vec![
        format!("| body |{}", cells(&bodies, |bytes| Some(size(bytes / 1024)))),
        format!("|---|{}", cells(&bodies, |_| Some("--:".into()))),
    ];
    for server in servers {
        let cells = cells(&bodies, |bytes| Some(shown(thousands(server.name, bytes)?)));
        lines.push(format!("| {} |{cells}", server.name));
    }
    for (title, others) in
        [("auto ÷ kettle's best fixed path", KETTLE_FIXED), ("auto ÷ nginx's best", NGINX)]
    {
        let ratio = |bytes| {
            let others = others.iter().filter_map(|other| thousands(other, bytes));
            let best = others.min_by(f64::total_cmp)?;
            Some(format!("{:.3}", thousands(AUTO, bytes)? / best))
        };
        let cells = cells(&bodies, ratio);
        if cells.contains('.') {
            lines.push(format!("| {title} |{cells}"));
        }
    }
    lines.join("\n")
}

/// Every figure, a line for each body and server.
fn work(vectors: &[Vector], servers: &[&MeasuredServer], erms: bool) -> String {
    let mut lines = vec![
        "| body | server | instr. user, K | kernel, K | copied B/B | filled B/B | encrypted | calls | switches | pages |".to_owned(),
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|".to_owned(),
    ];
    for bytes in bodies(vectors) {
        for server in servers {
            let figure = |name| mean(vectors, server.name, bytes, erms, name);
            let cell = |name, scale: f64, digits: usize| {
                let value = figure(name).map(|value| {
                    let value = format!("{:.digits$}", value * scale);
                    // A difference of two readings may be a little below nothing.
                    if value.trim_start_matches('-').bytes().all(|byte| b"0.".contains(&byte)) {
                        value.trim_start_matches('-').to_owned()
                    } else {
                        value
                    }
                });
                value.unwrap_or_default()
            };
            lines.push(format!(
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                size(bytes / 1024),
                server.name,
                cell("user_instructions_per_request", 0.001, 1),
                cell("kernel_instructions_per_request", 0.001, 1),
                cell("copied_bytes_per_byte", 1.0, 3),
                cell("zeroed_bytes_per_byte", 1.0, 3),
                cell("aes_blocks_per_byte", 16.0, 4),
                cell("calls_per_request", 1.0, 1),
                cell("context_switches_per_request", 1.0, 1),
                cell("pages_allocated_per_request", 1.0, 1),
            ));
        }
    }
    lines.join("\n")
}

fn bodies(vectors: &[Vector]) -> BTreeSet<u64> {
    vectors.iter().map(|vector| vector.bytes).collect()
}

/// System calls over two numbers of requests, by server and file: requests, then calls by name.
#[derive(Default)]
pub struct Calls(BTreeMap<(String, u64), BTreeMap<u64, BTreeMap<String, f64>>>);

impl Calls {
    /// Takes a line of the guest; others than `CALLS` are not ours.
    pub fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["CALLS", server, file, requests, call, count] = words.as_slice() else { return };
        let (Ok(file), Ok(requests), Ok(count)) = (file.parse(), requests.parse(), count.parse())
        else {
            return;
        };
        let runs = self.0.entry(((*server).to_owned(), file)).or_default();
        runs.entry(requests).or_default().insert((*call).to_owned(), count);
    }

    /// The calls of one more request, by server and size.
    pub fn table(&self, servers: &[&MeasuredServer]) -> String {
        let files: BTreeSet<u64> = self.0.keys().map(|(_, file)| *file).collect();
        let mut lines = vec![
            format!("| body |{}", cells(&files, |file| Some(size(file)))),
            format!("|---|{}", cells(&files, |_| Some("---".into()))),
        ];
        for server in servers {
            let calls = |file| self.of_one_more(server.name, file);
            lines.push(format!("| {} |{}", server.name, cells(&files, calls)));
        }
        lines.join("\n")
    }

    fn of_one_more(&self, server: &str, file: u64) -> Option<String> {
        let runs = self.0.get(&(server.to_owned(), file))?;
        let ((few, few_calls), (many, many_calls)) =
            (runs.first_key_value()?, runs.last_key_value()?);
        let requests = (many - few) as f64;
        let of = |call: &String| {
            let few = few_calls.get(call).copied().unwrap_or_default();
            (many_calls.get(call).copied().unwrap_or_default() - few) / requests
        };
        // Rarer ones belong to the clock, not to requests.
        let calls = many_calls.keys().filter(|call| of(call) >= CALLS_SHOWN_MIN);
        Some(calls.map(|call| format!("{call} {:.2}", of(call))).collect::<Vec<_>>().join(", "))
    }
}

fn cells(files: &BTreeSet<u64>, content: impl Fn(u64) -> Option<String>) -> String {
    let cell = |file: &u64| format!(" {} |", content(*file).unwrap_or_default());
    files.iter().map(cell).collect()
}

fn size(kibibytes: u64) -> String {
    match kibibytes {
        1024.. => format!("{} M", kibibytes / 1024),
        _ => format!("{kibibytes} K"),
    }
}

fn shown(thousands: f64) -> String {
    if thousands < 1000.0 { format!("{thousands:.1}") } else { format!("{thousands:.0}") }
}

const AUTO: &str = "kettle-auto";
const KETTLE_FIXED: &[&str] = &["kettle-user", "kettle-kernel-write", "kettle-kernel-sendfile"];
const NGINX: &[&str] = &["nginx-user", "nginx-kernel-write", "nginx-kernel-sendfile"];
const CALLS_SHOWN_MIN: f64 = 0.05;

#[cfg(test)]
mod tests;
