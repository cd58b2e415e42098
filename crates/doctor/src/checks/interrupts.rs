//! Which processors receive: all that arrives for a card on one of them keeps the others waiting.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    if machine.processors < 2 {
        return None;
    }
    let cards = machine.names_in("sys/class/net");
    let inspected: Vec<_> = cards.iter().filter_map(|card| Card::inspect(machine, card)).collect();
    let is_narrow = |card: &&Card| card.step.is_some();
    if let Some(Card { message, step }) = inspected.iter().find(is_narrow) {
        return Some(step.iter().fold(Finding::warning(NAME, message.clone()), |finding, step| {
            finding.fix(step.clone())
        }));
    }
    let messages: Vec<_> = inspected.into_iter().take(SHOWN_MAX).map(|card| card.message).collect();
    (!messages.is_empty()).then(|| Finding::good(NAME, messages.join("; ")))
}

/// The message about a card, and the advice.
struct Card {
    message: String,
    step: Option<String>,
}

impl Card {
    /// Cards that stand for hardware and have received something worth speaking of.
    fn inspect(machine: &Machine, card: &str) -> Option<Self> {
        let folder = format!("sys/class/net/{card}");
        let packets = machine.text(&format!("{folder}/statistics/rx_packets"))?;
        let packets: u64 = packets.trim().parse().ok()?;
        if packets < BUSY_PACKETS_MIN || !machine.has(&format!("{folder}/device")) {
            return None;
        }
        let queues = machine.names_in(&format!("{folder}/queues"));
        match queues.iter().filter(|queue| queue.starts_with("rx-")).count() {
            0 => None,
            1 => Self::with_one_queue(machine, card),
            queues => Self::with_queues(machine, card, queues),
        }
    }

    /// The kernel itself may hand on what one processor receives (Receive Packet Steering).
    fn with_one_queue(machine: &Machine, card: &str) -> Option<Self> {
        let setting = format!("sys/class/net/{card}/queues/rx-0/rps_cpus");
        let mask = machine.text(&setting)?;
        if mask.contains(|digit: char| digit.is_ascii_hexdigit() && digit != '0') {
            let message = format!("{card} has one queue, and RPS spreads what it receives");
            return Some(Self { message, step: None });
        }
        let message = format!(
            "{card} has one queue and RPS is off: one processor of {} handles all that arrives",
            machine.processors
        );
        let step = machine.write_as_root(&mask_of(machine.processors), &format!("/{setting}"));
        Some(Self { message, step: Some(step) })
    }

    fn with_queues(machine: &Machine, card: &str, queues: usize) -> Option<Self> {
        let interrupts = interrupts(machine, card);
        let affinity = |interrupt: &String| {
            let file = |name: &str| machine.text(&format!("proc/irq/{interrupt}/{name}"));
            let set = file("effective_affinity_list").filter(|it| !it.trim().is_empty());
            Some(set.or_else(|| file("smp_affinity_list"))?.trim().to_owned())
        };
        // One alone says nothing of the other queues.
        if interrupts.len() < 2 {
            return None;
        }
        let sets: BTreeSet<String> = interrupts.iter().filter_map(affinity).collect();
        let only = sets.first()?;
        if sets.len() > 1 || only.contains([',', '-']) {
            let message = format!("{card} has {queues} queues, on several processors");
            return Some(Self { message, step: None });
        }
        let message = format!(
            "all {queues} queues of {card} interrupt processor {only}, which handles all that arrives, of {}",
            machine.processors
        );
        let shown: Vec<_> = interrupts.iter().map(String::as_str).take(SHOWN_MAX).collect();
        let step = format!(
            "{}   # or write a processor of its own into each /proc/irq/{{{}}}/smp_affinity_list",
            machine.as_root("systemctl enable --now irqbalance"),
            shown.join(",")
        );
        Some(Self { message, step: Some(step) })
    }
}

/// The interrupts of a card that have come at least once: not those of its configuration.
fn interrupts(machine: &Machine, card: &str) -> Vec<String> {
    let counts = machine.text("proc/interrupts").unwrap_or_default();
    let has_come = |interrupt: &String| {
        let of_it = |line: &&str| {
            line.trim_start().split_once(':').is_some_and(|(number, _)| number == interrupt)
        };
        let line = counts.lines().find(of_it).unwrap_or_default();
        let numbers = line.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok());
        numbers.into_iter().any(|count| count > 0)
    };
    // Those of a virtio card are its parent's.
    let folders = ["device/msi_irqs", "device/../msi_irqs"];
    let names = folders.map(|folder| machine.names_in(&format!("sys/class/net/{card}/{folder}")));
    let own = names.into_iter().find(|names| !names.is_empty()).unwrap_or_default();
    own.into_iter().filter(has_come).collect()
}

/// The first `processors` processors as a mask of the kernel's: hexadecimal, in groups of 32 bits.
fn mask_of(processors: usize) -> String {
    let whole = processors / 32;
    let rest = processors % 32;
    let first = (rest > 0).then(|| format!("{:x}", (1_u64 << rest) - 1));
    first.into_iter().chain((0..whole).map(|_| "ffffffff".to_owned())).collect::<Vec<_>>().join(",")
}

const NAME: &str = "interrupts";
const SHOWN_MAX: usize = 8;

/// A card that has received less since it came up is no server's.
const BUSY_PACKETS_MIN: u64 = 100_000;
