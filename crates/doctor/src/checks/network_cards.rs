//! Network cards that could encrypt records themselves.

use kettle_kernel::netlink::{NetworkCard, Offload};

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let cards = match &machine.network_cards {
        Ok(cards) => cards,
        Err(error) => {
            let message = format!("the kernel does not tell about offloads: {error}");
            return Some(Finding::good(NAME, message));
        }
    };
    let is_able = |card: &&NetworkCard| card.tls_tx != Offload::Unsupported;
    let able: Vec<_> = cards.iter().filter(is_able).collect();
    if able.is_empty() {
        let count = cards.iter().filter(|card| card.name != "lo").count();
        let message = match count {
            0 => "none here".to_owned(),
            _ => format!("none of {count} can encrypt TLS; kettle does not need it"),
        };
        return Some(Finding::good(NAME, message));
    }
    let shown = able.iter().take(SHOWN_MAX).map(|card| {
        format!("{} sends: {}, receives: {}", card.name, word(card.tls_tx), word(card.tls_rx))
    });
    let mut message = shown.collect::<Vec<_>>().join("; ");
    if able.len() > SHOWN_MAX {
        message += &format!("; and {} more", able.len() - SHOWN_MAX);
    }
    message += " (TLS 1.2 only)";
    Some(match able.iter().find(|card| card.tls_tx == Offload::Off) {
        None => Finding::good(NAME, message),
        Some(card) => {
            let command = format!("ethtool -K {} tls-hw-tx-offload on", card.name);
            Finding::warning(NAME, message).fix(machine.as_root(&command))
        }
    })
}

fn word(offload: Offload) -> &'static str {
    match offload {
        Offload::Unsupported => "no",
        Offload::Off => "off",
        Offload::On => "on",
    }
}

const NAME: &str = "network cards";
const SHOWN_MAX: usize = 4;
