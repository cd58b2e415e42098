//! A calibration as a table for people, 80 columns wide at most, and as JSON for programs.

use std::fmt::Write;

use serde_json::{Value, json};

use super::crossover::{CostRow, CrossoverVerdict};
use super::{CIPHER, Calibration, HOT_FILE_BYTES, VERSION};
use crate::number;
use crate::report::canvas::wrapped_by;
use crate::stats::Estimate;

impl Calibration {
    /// The table, what follows from it, and the line for the configuration if there is one.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        _ = self.write_table(&mut text);
        text.push('\n');
        for paragraph in self.conclusions() {
            text.push_str(&wrap(&paragraph));
        }
        if let Some(line) = self.config_line() {
            text.push_str("\n    ");
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// The line for a listener of the configuration, if the figures allow one.
    pub fn config_line(&self) -> Option<String> {
        match &self.verdict {
            CrossoverVerdict::From(bytes) => Some(format!("crossover = \"{}\"", size(*bytes))),
            CrossoverVerdict::Never => Some("path = \"user\"".to_owned()),
            CrossoverVerdict::Undecided
            | CrossoverVerdict::TooNoisy { .. }
            | CrossoverVerdict::TooShort
            | CrossoverVerdict::NoKernelTls => None,
        }
    }

    /// Everything in the table, in seconds, with the intervals.
    pub fn to_json(&self) -> Value {
        let (verdict, crossover_bytes) = match &self.verdict {
            CrossoverVerdict::From(bytes) => ("from", Some(*bytes)),
            CrossoverVerdict::Never => ("never", None),
            CrossoverVerdict::Undecided => ("undecided", None),
            CrossoverVerdict::TooNoisy { .. } => ("too_noisy", None),
            CrossoverVerdict::TooShort => ("too_short", None),
            CrossoverVerdict::NoKernelTls => ("no_kernel_tls", None),
        };
        json!({
            "kernel": self.kernel_release,
            "version": VERSION.name(),
            "cipher": CIPHER.name(),
            "hot_file_bytes": HOT_FILE_BYTES,
            "kernel_refusal": self.kernel_refusal,
            "switch_seconds": self.switch_cost.map(|cost| cost.as_secs_f64()),
            "rounds": self.rounds,
            "elapsed_seconds": self.elapsed.as_secs_f64(),
            "rows": self.rows.iter().map(row_json).collect::<Vec<_>>(),
            "verdict": verdict,
            "crossover_bytes": crossover_bytes,
        })
    }

    fn write_table(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "Processor time a response, in microseconds (median and 95 % interval)")?;
        writeln!(
            text,
            "Linux {}, {} {}, {} rounds in {:.0} s\n",
            self.kernel_release,
            VERSION.name(),
            CIPHER.name(),
            self.rounds,
            self.elapsed.as_secs_f64()
        )?;
        let has_kernel = self.kernel_refusal.is_none();
        write!(text, "{:>8}  {:>16}", "body", "user")?;
        if has_kernel {
            write!(text, "  {:>16}  {:>16}  kernel", "kernel-write", "kernel-sendfile")?;
        }
        text.push('\n');
        for row in &self.rows {
            write!(text, "{:>8}  {}", size(row.body_bytes), cell(Some(&row.user)))?;
            if has_kernel {
                let write = row.kernel_write.as_ref();
                let sendfile = row.kernel_sendfile.as_ref();
                write!(text, "  {}  {}", cell(write), cell(sendfile))?;
                write!(text, "  {}", self.comparison(row))?;
            }
            writeln!(text, "{}", if row.is_noisy() { " ?" } else { "" })?;
        }
        Ok(())
    }

    /// The kernel's cost relative to user space, by the kernel path the server would take.
    fn comparison(&self, row: &CostRow) -> String {
        match row.kernel(HOT_FILE_BYTES) {
            Some(kernel) if row.user.median > 0.0 => {
                format!("{:>6}", format!("{:.2}×", kernel.median / row.user.median))
            }
            _ => " ".repeat(6),
        }
    }

    fn conclusions(&self) -> Vec<String> {
        let mut paragraphs = Vec::new();
        if let Some(refusal) = &self.kernel_refusal {
            paragraphs.push(format!(
                "The kernel paths were not measured: {refusal}. `kettle doctor` says what to do."
            ));
        }
        let noisy = self.rows.iter().any(CostRow::is_noisy);
        if noisy {
            paragraphs.push(
                "A ? marks figures that are uncertain or changed while measuring: something else \
                 used the machine, or its clock speed moved."
                    .to_owned(),
            );
        }
        if let Some(cost) = self.switch_cost {
            paragraphs.push(format!(
                "Moving a connection into the kernel costs {:.0} µs once.",
                cost.as_secs_f64() * 1e6
            ));
        }
        paragraphs.push(self.verdict_text());
        paragraphs
    }

    fn verdict_text(&self) -> String {
        match &self.verdict {
            CrossoverVerdict::From(bytes) => format!(
                "From {} on, the kernel is cheaper at every size measured. For the listener:",
                size(*bytes)
            ),
            CrossoverVerdict::Never => {
                "The kernel costs more at the largest size measured. For the listener:".to_owned()
            }
            CrossoverVerdict::Undecided => {
                "At the largest size measured, the kernel and kettle itself cannot be told apart, \
                 so no crossover follows. Measure longer with --seconds, and try again."
                    .to_owned()
            }
            CrossoverVerdict::TooNoisy { .. } => {
                "This machine is too busy to say where the kernel wins. Stop what else runs, or \
                 measure longer with --seconds, and try again."
                    .to_owned()
            }
            CrossoverVerdict::TooShort => {
                "There was not enough time for a judgement; give more with --seconds.".to_owned()
            }
            CrossoverVerdict::NoKernelTls => {
                "Without kernel TLS every response is encrypted by kettle itself, so there is no \
                 crossover to set."
                    .to_owned()
            }
        }
    }
}

/// A cost with its interval, 16 columns wide.
fn cell(estimate: Option<&Estimate>) -> String {
    match estimate {
        Some(estimate) => {
            let spread = format!("±{:.0} %", estimate.spread() * 100.0);
            format!("{:>9.1} {spread:>6}", estimate.median * 1e6)
        }
        None => " ".repeat(16),
    }
}

/// A size as the configuration takes it.
fn size(bytes: u64) -> String {
    number::size(bytes).trim_end_matches(" B").to_owned()
}

/// A paragraph in lines of at most `COLUMNS`.
fn wrap(paragraph: &str) -> String {
    let columns = |text: &str| text.chars().count();
    let fits = |line: &str, word: &str| columns(line) + 1 + columns(word) <= COLUMNS;
    wrapped_by(paragraph, fits).join("\n") + "\n"
}

fn row_json(row: &CostRow) -> Value {
    let estimate = |estimate: &Estimate| {
        json!({
            "median": estimate.median,
            "low": estimate.low,
            "high": estimate.high,
            "drift": estimate.drift,
            "samples": estimate.samples,
        })
    };
    json!({
        "body_bytes": row.body_bytes,
        "user": estimate(&row.user),
        "kernel_write": row.kernel_write.as_ref().map(estimate),
        "kernel_sendfile": row.kernel_sendfile.as_ref().map(estimate),
        "is_noisy": row.is_noisy(),
    })
}

const COLUMNS: usize = 80;

#[cfg(test)]
mod tests;
