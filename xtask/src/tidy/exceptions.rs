//! The known places that break a rule, each with its reason.
//!
//! An exception that covers nothing any more is itself a finding, so the list cannot rot.

use super::violation::Violation;

/// One file that one rule leaves alone.
pub struct Exception {
    /// The rule's name.
    pub rule: &'static str,
    /// The file, relative to the repository.
    pub path: &'static str,
    /// Why the rule does not fit here.
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

/// The exceptions of this repository.
pub const LIST: &[Exception] = &[
    Exception {
        rule: "type_name",
        path: "crates/preamble/src/starttls/smtp.rs",
        reason: "`Server` and `Client` of two protocols, known by their modules: `smtp::Server`",
    },
    Exception {
        rule: "purity",
        path: "crates/config/src/check_files.rs",
        reason: "asks whether the files a configuration names exist; the parser does not use it",
    },
    Exception {
        rule: "long_line",
        path: "docs/results/answer.md",
        reason: "`kettle bench report --card` writes it",
    },
    Exception {
        rule: "unfinished",
        path: "STYLE.md",
        reason: "states the rule, and so names the word",
    },
    Exception {
        rule: "unfinished",
        path: "xtask/src/tidy/text.rs",
        reason: "holds the words to look for",
    },
    Exception {
        rule: "unfinished",
        path: "xtask/src/tidy/text/tests.rs",
        reason: "shows the rule what to catch",
    },
    Exception {
        rule: "machine_path",
        path: "xtask/src/tidy/text.rs",
        reason: "holds the paths to look for",
    },
    Exception {
        rule: "machine_path",
        path: "xtask/src/tidy/text/tests.rs",
        reason: "shows the rule what to catch",
    },
    Exception {
        rule: "machine_path",
        path: "xtask/src/vm/initramfs.rs",
        reason: "an init script for the guest, whose own folders these are",
    },
];

#[cfg(test)]
mod tests;
