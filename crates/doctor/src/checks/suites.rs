//! What the probe found: each version with each cipher, sent and received.

use kettle_kernel::ktls::{Cipher, Version};
use kettle_kernel::probe::{Capabilities, ProbeOutcome};

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
        return Some(Finding::bad(NAME, format!("{counted}: {reason}")).fix(way_out(machine)));
    }
    let finding = if sent == tried {
        Finding::good(NAME, counted)
    } else {
        let refused = |cipher| Version::ALL.iter().any(|it| !found.carries_tx(*it, cipher));
        let mut finding = Finding::warning(NAME, counted);
        if refused(Cipher::Aes128Gcm) || refused(Cipher::Aes256Gcm) {
            finding = finding.fix(machine.as_root(LOAD_AES_GCM));
        }
        if refused(Cipher::Chacha20Poly1305) {
            finding = finding.fix(machine.as_root(LOAD_CHACHA));
        }
        finding
    };
    Some(finding.table(table(found)))
}

/// What to do when no suite works at all.
fn way_out(machine: &Machine) -> String {
    let is_listed = machine.capabilities.ulp_listed == Some(true);
    let is_impossible =
        machine.kernel_config().is_some_and(|config| config.option("CONFIG_TLS").is_none());
    if is_listed {
        machine.as_root(LOAD_AES_GCM)
    } else if is_impossible {
        "needs CONFIG_TLS, see above".to_owned()
    } else {
        "load the module, see above, and run this again".to_owned()
    }
}

fn table(found: &Capabilities) -> Vec<String> {
    let mut lines = vec![
        "                     TLS 1.2     TLS 1.3".to_owned(),
        "                     tx  rx      tx  rx  rekey".to_owned(),
    ];
    for cipher in Cipher::ALL {
        let mark = |version, pick: fn(&kettle_kernel::probe::SuiteCapability) -> &ProbeOutcome| {
            match found.suite(version, cipher).map(pick) {
                Some(Ok(())) => '✓',
                _ => '✗',
            }
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
