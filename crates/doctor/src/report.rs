//! All findings about one machine, as a screen of text or as JSON, and the verdict as an exit code.

use kettle_kernel::probe::{Capabilities, ProbeOutcome, SuiteCapability};
use serde_json::{Value, json};

use crate::checks;
use crate::finding::{Finding, State};
use crate::machine::Machine;
use crate::render::{self, Style};

/// The findings about one machine.
pub struct Report {
    findings: Vec<Finding>,
    capabilities: Capabilities,
}

impl Report {
    /// Runs every check.
    #[must_use]
    pub fn of(machine: &Machine) -> Self {
        let findings = checks::ALL.iter().filter_map(|check| check(machine)).collect();
        Self { findings, capabilities: machine.capabilities.clone() }
    }

    /// The findings, in the order of the screen.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// One screen of text.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut text = format!("kettle doctor on Linux {}\n\n", self.capabilities.kernel_release);
        for line in render::wrap(&self.verdict(), render::COLUMNS_MAX) {
            text += &format!("{line}\n");
        }
        text.push('\n');
        text.extend(self.findings.iter().map(|finding| render::finding(finding, style)));
        text
    }

    /// The same for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let found = &self.capabilities;
        json!({
            "kettle": env!("CARGO_PKG_VERSION"),
            "kernel": found.kernel_release,
            "ktls_tx": self.carries_tx(),
            "verdict": self.verdict(),
            "obstacle": self.obstacle(),
            "findings": self.findings,
            "probe": {
                "ulp_listed": found.ulp_listed,
                "suites": found.suites.iter().map(suite_json).collect::<Vec<_>>(),
                "sendfile": outcome_json(&found.sendfile),
                "splice": outcome_json(&found.splice),
                "zero_copy_read_only": outcome_json(&found.zero_copy_read_only),
                "max_payload_length": outcome_json(&found.max_payload_length),
            },
        })
    }

    /// In a few words, why this kernel encrypts nothing; `None` if it does.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        let reason = self.capabilities.tx_reason()?;
        // The first thing that is wrong explains the probe's failure better than its errno does.
        let first = self.findings.iter().find(|finding| finding.state == State::Bad);
        let cause = first.filter(|finding| finding.check != checks::SUITES);
        Some(cause.map_or(reason, |finding| format!("{} {}", finding.check, finding.message)))
    }

    /// 0 only if this kernel encrypts what is sent with at least one suite.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        u8::from(!self.carries_tx())
    }

    fn carries_tx(&self) -> bool {
        self.capabilities.tx_reason().is_none()
    }

    fn verdict(&self) -> String {
        match self.obstacle() {
            None => "kTLS works here: kettle can let this kernel encrypt what it sends.".to_owned(),
            Some(reason) => format!(
                "kTLS does not work here: {reason}. kettle serves all the same, encrypting in user space."
            ),
        }
    }
}

fn suite_json(suite: &SuiteCapability) -> Value {
    json!({
        "version": suite.version.name(),
        "cipher": suite.cipher.name(),
        "tx": outcome_json(&suite.tx),
        "rx": outcome_json(&suite.rx),
        "rekey": outcome_json(&suite.rekey),
    })
}

fn outcome_json(outcome: &ProbeOutcome) -> Value {
    match outcome {
        Ok(()) => json!({ "works": true }),
        Err(reason) => json!({ "works": false, "reason": reason }),
    }
}
