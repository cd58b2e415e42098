//! The findings of the probe: each version with each cipher, sent and received.

use kettle_kernel::ktls::{CIPHER_MISSING, Cipher, SUITE_UNSUPPORTED, Version};
use kettle_kernel::probe::{Capabilities, ProbeOutcome, SuiteCapability};

use super::module;
use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let found = &machine.capabilities;
    let tried = found.suites.len();
    let sent = found.suites.iter().filter(|suite| suite.tx.is_ok()).count();
    let received = found.suites.iter().filter(|suite| suite.rx.is_ok()).count();
    let counted =
        format!("probed: {sent} of {tried} suites sent, {received} received by the kernel");
    if let Some(reason) = found.tx_reason() {
        // Six rows of the same cross would push the screen's useful lines away.
        let finding = Finding::bad(NAME, format!("{counted}: {reason}"));
        return Some(ways_out(machine).into_iter().fold(finding, Finding::fix));
    }
    let finding = if sent == tried {
        Finding::good(NAME, counted)
    } else {
        refusals(machine).into_iter().fold(Finding::warning(NAME, counted), Finding::fix)
    };
    Some(finding.table(table(found)))
}

/// Returns the advice when no suite works at all.
fn ways_out(machine: &Machine) -> Vec<String> {
    let is_there = machine.capabilities.ulp_listed.unwrap_or_else(|| module::is_there(machine));
    let is_impossible =
        machine.kernel_config().is_some_and(|config| config.option("CONFIG_TLS").is_none());
    if is_there {
        refusals(machine)
    } else if is_impossible {
        vec!["needs CONFIG_TLS, see above".to_owned()]
    } else {
        vec!["load the module, see above, and run this again".to_owned()]
    }
}

/// Returns the advice about each suite that is not sent, each thing once.
fn refusals(machine: &Machine) -> Vec<String> {
    let mut steps = Vec::new();
    for suite in &machine.capabilities.suites {
        let Err(reason) = &suite.tx else { continue };
        let step = refusal(machine, suite, reason);
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps
}

fn refusal(machine: &Machine, suite: &SuiteCapability, reason: &str) -> String {
    let lacks = |what: &str, since: &str| {
        format!("{what}: not known to this kernel; Linux {since} brings it")
    };
    match (reason, suite.version, suite.cipher) {
        (CIPHER_MISSING, _, Cipher::Chacha20Poly1305) => machine.as_root(LOAD_CHACHA),
        (CIPHER_MISSING, ..) => machine.as_root(LOAD_AES_GCM),
        (SUITE_UNSUPPORTED, _, Cipher::Chacha20Poly1305) => lacks(suite.cipher.name(), "5.11"),
        (SUITE_UNSUPPORTED, Version::Tls13, _) => lacks(suite.version.name(), "5.1"),
        (SUITE_UNSUPPORTED, _, Cipher::Aes256Gcm) => lacks(suite.cipher.name(), "5.1"),
        // The table says which, and the reason is the same for all of them.
        _ => format!("refused: {reason}"),
    }
}

fn table(found: &Capabilities) -> Vec<String> {
    let mut lines = vec![
        "                     TLS 1.2     TLS 1.3".to_owned(),
        "                     tx  rx      tx  rx  rekey".to_owned(),
    ];
    for cipher in Cipher::ALL {
        let mark = |version, pick: fn(&SuiteCapability) -> &ProbeOutcome| match found
            .suite(version, cipher)
            .map(pick)
        {
            Some(Ok(())) => '✓',
            _ => '✗',
        };
        let [old, new] = Version::ALL;
        lines.push(format!(
            "{:<21}{}   {}       {}   {}   {}",
            cipher.name(),
            mark(old, |suite| &suite.tx),
            mark(old, |suite| &suite.rx),
            mark(new, |suite| &suite.tx),
            mark(new, |suite| &suite.rx),
            mark(new, |suite| &suite.rekey),
        ));
    }
    lines
}

pub(crate) const NAME: &str = "suites";
// By the names under which the crypto API itself asks for them: which module answers differs by processor.
const LOAD_AES_GCM: &str = "modprobe -a crypto-gcm crypto-ctr crypto-ghash crypto-aes";
const LOAD_CHACHA: &str = "modprobe -a crypto-rfc7539 crypto-chacha20 crypto-poly1305";
