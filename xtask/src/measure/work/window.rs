//! The output of the plugin: for each window, what the server did, what the client did, and the rest.

use std::collections::BTreeMap;

pub struct Window(BTreeMap<String, u64>);

impl Window {
    /// A count by its full name, such as `server.user.instructions`.
    pub fn count(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }
}

pub fn read(text: &str) -> Result<Vec<Window>, String> {
    let mut windows = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("WINDOW") => windows.push(counts(words.skip(1)).ok_or_else(|| broken(line))?),
            Some("TROUBLE") => return Err(format!("the plugin could not count: {line}")),
            Some("END") => return Ok(windows),
            _ => return Err(broken(line)),
        }
    }
    Err("the plugin has not come to its end".into())
}

fn counts<'l>(words: impl Iterator<Item = &'l str>) -> Option<Window> {
    let pairs = words.map(|word| {
        let (name, value) = word.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    pairs.collect::<Option<_>>().map(Window)
}

fn broken(line: &str) -> String {
    format!("the plugin wrote `{line}`")
}

/// Checks the plugin by the work `window.c` does a known number of times: the difference of two numbers must be exact.
pub fn check(few: (u64, &Window), many: (u64, &Window)) -> Result<(), String> {
    let turns = many.0.saturating_sub(few.0);
    for (name, known) in KNOWN {
        let name = format!("client.user.{name}");
        let counted = many.1.count(&name).saturating_sub(few.1.count(&name));
        if counted != turns * known {
            return Err(format!(
                "the plugin counts wrong: {name} is {counted}, not {}; do not trust this QEMU",
                turns * known
            ));
        }
    }
    Ok(())
}

/// One turn of `known` in `window.c`.
const KNOWN: &[(&str, u64)] = &[
    ("instructions", 2022),
    ("copied", 4196),
    ("filled", 2048),
    ("blocks", 3),
    ("rounds", 12),
    ("calls", 1),
];

#[cfg(test)]
mod tests;
