//! What the guest printed, as tables.

use std::collections::{BTreeMap, BTreeSet};

use super::Server;

/// Counts over two numbers of requests, by server and file.
#[derive(Default)]
pub struct Work(BTreeMap<(String, u64), Vec<Run>>);

struct Run {
    requests: f64,
    instructions: f64,
    moved: u64,
}

impl Work {
    /// Takes a line of the guest; others than `WORK` are not ours.
    pub fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["WORK", server, file, requests, instructions, moved] = words.as_slice() else {
            return;
        };
        let (Ok(file), Ok(requests), Ok(instructions), Ok(moved)) =
            (file.parse(), requests.parse(), instructions.parse(), moved.parse())
        else {
            return;
        };
        let runs = self.0.entry(((*server).to_owned(), file)).or_default();
        runs.push(Run { requests, instructions, moved });
    }

    /// Thousands of instructions for one more request.
    fn thousands(&self, server: &str, file: u64) -> Option<f64> {
        let [few, many] = self.0.get(&(server.to_owned(), file))?.as_slice() else { return None };
        Some((many.instructions - few.instructions) / (many.requests - few.requests) / 1000.0)
    }

    /// All servers by all sizes, and what kettle's own choice is measured by.
    pub fn table(&self, servers: &[&Server]) -> Result<String, String> {
        self.check(servers)?;
        let files: BTreeSet<u64> = self.0.keys().map(|(_, file)| *file).collect();
        let mut lines = vec![
            format!("| body |{}", cells(&files, |file| Some(size(file)))),
            format!("|---|{}", cells(&files, |_| Some("--:".into()))),
        ];
        for server in servers {
            let cells = cells(&files, |file| Some(shown(self.thousands(server.name, file)?)));
            lines.push(format!("| {} |{cells}", server.name));
        }
        for (title, others) in
            [("auto ÷ kettle's best fixed path", KETTLE_FIXED), ("auto ÷ nginx's best", NGINX)]
        {
            let ratio = |file| {
                let others = others.iter().filter_map(|other| self.thousands(other, file));
                let best = others.min_by(f64::total_cmp)?;
                Some(format!("{:.3}", self.thousands(AUTO, file)? / best))
            };
            lines.push(format!("| {title} |{}", cells(&files, ratio)));
        }
        Ok(lines.join("\n"))
    }

    /// A connection that was to move into the kernel and did not has measured something else.
    fn check(&self, servers: &[&Server]) -> Result<(), String> {
        for server in servers {
            let Some(is_offloaded) = server.is_offloaded else { continue };
            let runs = self.0.iter().filter(|((name, _), _)| name == server.name);
            for ((_, file), runs) in runs {
                if runs.iter().any(|run| (run.moved > 0) != is_offloaded) {
                    let size = size(*file);
                    return Err(format!("{} took another path for {size}", server.name));
                }
            }
        }
        Ok(())
    }
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
    pub fn table(&self, servers: &[&Server]) -> String {
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
