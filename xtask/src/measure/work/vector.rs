//! The work of one more request: what the guest printed and what the plugin wrote, as the difference of two numbers of requests.

use std::collections::BTreeMap;

use super::MeasuredServer;
use super::window::{self, Window};

#[derive(Default)]
pub struct GuestLines {
    /// The facts of the guest about itself, in its order.
    pub machine: Vec<(String, String)>,
    known: Vec<(u64, usize)>,
    runs: Vec<WorkLine>,
}

struct WorkLine {
    server: String,
    kibibytes: u64,
    round: u32,
    requests: f64,
    window: usize,
    clock: f64,
    pages: f64,
    moved: u64,
}

/// The work of one more request of one server, for one size, in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    pub server: String,
    pub bytes: u64,
    /// Which round, from 0.
    pub round: u32,
    /// True if the guest's processor had fast string copies.
    pub erms: bool,
    /// The figures by their names in `measure/bench/src/figure.rs`.
    pub figures: BTreeMap<&'static str, f64>,
}

impl GuestLines {
    pub fn take(&mut self, line: &str) {
        if let Some((name, value)) =
            line.strip_prefix("MACHINE ").and_then(|rest| rest.split_once(' '))
        {
            self.machine.push((name.to_owned(), value.to_owned()));
        }
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["KNOWN", turns, window] => {
                self.known.extend(turns.parse().ok().zip(window.parse().ok()));
            }
            ["WORK", server, numbers @ ..] => self.runs.extend(WorkLine::parse(server, numbers)),
            _ => {}
        }
    }

    pub fn machine(&self, name: &str) -> &str {
        self.machine.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// The figures, once the plugin has proved that it counts right and every connection took the path it was to take.
    pub fn vectors(
        &self,
        windows: &[Window],
        servers: &[&MeasuredServer],
        erms: bool,
    ) -> Result<Vec<Vector>, String> {
        let window = |number: usize| {
            let found = number.checked_sub(1).and_then(|index| windows.get(index));
            found.ok_or_else(|| format!("the plugin has no window {number}"))
        };
        let [(few, few_window), (many, many_window)] = self.known.as_slice() else {
            return Err("the guest has not checked the plugin".into());
        };
        window::check((*few, window(*few_window)?), (*many, window(*many_window)?))?;
        let mut vectors = Vec::new();
        for pair in self.runs.chunks(2) {
            let [few, many] = pair else { return Err("a run lacks its second half".into()) };
            let server = servers.iter().find(|server| server.name == few.server);
            let wants = server.and_then(|server| server.is_offloaded);
            if pair.iter().any(|run| wants.is_some_and(|wants| wants != (run.moved > 0))) {
                return Err(format!("{} took another path for {} KiB", few.server, few.kibibytes));
            }
            let counts = (window(few.window)?, window(many.window)?);
            vectors.push(Vector {
                server: few.server.clone(),
                bytes: few.kibibytes * 1024,
                round: few.round,
                erms,
                figures: figures(few, many, counts)?,
            });
        }
        Ok(vectors)
    }
}

impl WorkLine {
    fn parse(server: &str, numbers: &[&str]) -> Option<Self> {
        let [kibibytes, round, requests, window, clock, pages, moved] = numbers else {
            return None;
        };
        Some(Self {
            server: server.to_owned(),
            kibibytes: kibibytes.parse().ok()?,
            round: round.parse().ok()?,
            requests: requests.parse().ok()?,
            window: window.parse().ok()?,
            clock: clock.parse().ok()?,
            pages: pages.parse().ok()?,
            moved: moved.parse().ok()?,
        })
    }
}

fn figures(
    few: &WorkLine,
    many: &WorkLine,
    windows: (&Window, &Window),
) -> Result<BTreeMap<&'static str, f64>, String> {
    let requests = many.requests - few.requests;
    let bytes = (few.kibibytes * 1024) as f64;
    let of = |name: &str| {
        let name = format!("server.{name}");
        (windows.1.count(&name) as f64 - windows.0.count(&name) as f64) / requests
    };
    let both = |name: &str| of(&format!("user.{name}")) + of(&format!("kernel.{name}"));
    let clock = (many.clock - few.clock) / requests;
    let counted = both("instructions") + both("repeats");
    // The scheduler's clock and the plugin know nothing of each other.
    if (clock / counted - 1.0).abs() > CLOCK_ERROR_MAX {
        return Err(format!(
            "{} at {} KiB: the process clock says {clock:.0} instructions, the plugin {counted:.0}",
            few.server, few.kibibytes
        ));
    }
    Ok(BTreeMap::from([
        ("instructions_per_request", both("instructions")),
        ("user_instructions_per_request", of("user.instructions")),
        ("kernel_instructions_per_request", of("kernel.instructions")),
        ("counted_instructions_per_request", clock),
        ("copied_bytes_per_byte", both("copied") / bytes),
        ("zeroed_bytes_per_byte", both("filled") / bytes),
        ("aes_blocks_per_byte", both("blocks") / bytes),
        ("calls_per_request", of("user.calls")),
        ("context_switches_per_request", of("switches")),
        ("pages_allocated_per_request", (many.pages - few.pages) / requests),
    ]))
}

/// The mean of a figure over the rounds.
pub fn mean(vectors: &[Vector], server: &str, bytes: u64, erms: bool, figure: &str) -> Option<f64> {
    let found: Vec<f64> = vectors
        .iter()
        .filter(|it| it.server == server && it.bytes == bytes && it.erms == erms)
        .filter_map(|it| it.figures.get(figure).copied())
        .collect();
    (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
}

/// Timer ticks fall on either side of a reading; 1 KB requests are the shortest and show it most.
const CLOCK_ERROR_MAX: f64 = 0.03;

#[cfg(test)]
mod tests;
