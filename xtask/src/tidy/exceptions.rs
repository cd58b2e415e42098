//! The known places that break a rule, each with its reason.
//!
//! An exception that covers nothing any more is itself a finding, so the list cannot rot.

use super::violation::Violation;

pub struct Exception {
    pub rule: &'static str,
    /// The file, relative to the repository.
    pub path: &'static str,
    pub reason: &'static str,
}

/// Drops the violations the list covers; adds one for each entry that covers none or gives no reason.
pub fn apply(list: &[Exception], violations: Vec<Violation>) -> Vec<Violation> {
    let mut is_used = vec![false; list.len()];
    let mut kept = Vec::new();
    for violation in violations {
        let covers = |exception: &Exception| {
            exception.rule == violation.rule && exception.path == violation.path
        };
        match list.iter().position(covers) {
            Some(index) => is_used[index] = true,
            None => kept.push(violation),
        }
    }
    for (exception, is_used) in list.iter().zip(is_used) {
        let Exception { rule, path, reason } = exception;
        if !is_used {
            let message = format!("`{rule}` has nothing to except here; remove the entry");
            kept.push(Violation::in_file(path, "exception", message));
        }
        if reason.is_empty() {
            let message = format!("the exception from `{rule}` gives no reason");
            kept.push(Violation::in_file(path, "exception", message));
        }
    }
    kept.sort();
    kept
}

pub const LIST: &[Exception] = &[
    exception(
        "type_name",
        "crates/preamble/src/starttls/smtp.rs",
        "`Server` and `Client` of two protocols, known by their modules: `smtp::Server`",
    ),
    exception(
        "purity",
        "crates/config/src/check_files.rs",
        "asks whether the files a configuration names exist; the parser does not use it",
    ),
    exception("long_line", "docs/results/answer.md", "`kettle bench report --card` writes it"),
    exception("unfinished", "STYLE.md", "states the rule, and so names the word"),
    exception("unfinished", "xtask/src/tidy/text.rs", "holds the words to look for"),
    exception("unfinished", "xtask/src/tidy/text/tests.rs", "shows the rule what to catch"),
    exception("machine_path", "xtask/src/tidy/text.rs", "holds the paths to look for"),
    exception("machine_path", "xtask/src/tidy/text/tests.rs", "shows the rule what to catch"),
    exception(
        "machine_path",
        "xtask/src/vm/initramfs.rs",
        "an init script for the guest, whose own folders these are",
    ),
];

const fn exception(rule: &'static str, path: &'static str, reason: &'static str) -> Exception {
    Exception { rule, path, reason }
}

#[cfg(test)]
mod tests;
