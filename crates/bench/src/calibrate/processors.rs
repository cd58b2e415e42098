//! Which processors the sending and the receiving threads run on: two cores where there are two,
//! so that the receiver takes no time from the thread that is measured.

use std::fs;

use kettle_kernel::process;

/// The processors of a measurement.
pub(super) struct Processors {
    sender: usize,
    /// Absent when there is one processor only.
    receiver: Option<usize>,
}

impl Processors {
    pub(super) fn choose() -> Self {
        Self::among(&process::cpus_allowed(), siblings)
    }

    /// The last processor sends: the first ones tend to serve interrupts. A receiver on the same
    /// core's other hardware thread would slow the sender down, so that is the second choice.
    fn among(allowed: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> Self {
        let sender = allowed.last().copied().unwrap_or(0);
        let shared_core = siblings(sender);
        let others = || allowed.iter().copied().filter(|cpu| *cpu != sender);
        let receiver = others().find(|cpu| !shared_core.contains(cpu)).or_else(|| others().next());
        Self { sender, receiver }
    }

    pub(super) fn are_separate(&self) -> bool {
        self.receiver.is_some()
    }

    /// Puts the calling thread where the sender belongs. A refusal only makes for more noise,
    /// which shows in the figures.
    pub(super) fn pin_sender(&self) {
        _ = process::pin_to_cpu(self.sender);
    }

    /// Puts the calling thread where receivers belong.
    pub(super) fn pin_receiver(&self) {
        _ = process::pin_to_cpu(self.receiver.unwrap_or(self.sender));
    }
}

/// The hardware threads of the same core, from a list such as `0,4` or `0-1`.
fn siblings(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    fs::read_to_string(path).map(|text| parse_list(text.trim())).unwrap_or_default()
}

fn parse_list(text: &str) -> Vec<usize> {
    text.split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
        })
        .flat_map(|range| range.take(SIBLINGS_MAX))
        .collect()
}

/// No processor has more hardware threads a core.
const SIBLINGS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(allowed: &[usize], siblings: &[usize]) -> (usize, Option<usize>) {
        let processors = Processors::among(allowed, |_| siblings.to_vec());
        (processors.sender, processors.receiver)
    }

    #[test]
    fn one_processor_serves_both() {
        assert_eq!(chosen(&[3], &[3]), (3, None));
    }

    #[test]
    fn receiver_gets_another_core_where_there_is_one() {
        assert_eq!(chosen(&[0, 1, 2, 3], &[0, 3]), (3, Some(1)));
        assert_eq!(chosen(&[0, 1, 2, 3], &[2, 3]), (3, Some(0)));
    }

    #[test]
    fn receiver_shares_the_core_when_there_is_no_other() {
        assert_eq!(chosen(&[0, 1], &[0, 1]), (1, Some(0)));
    }

    #[test]
    fn sibling_lists_are_read_in_both_forms() {
        assert_eq!(parse_list("0,4"), [0, 4]);
        assert_eq!(parse_list("2-3"), [2, 3]);
        assert!(parse_list("").is_empty());
    }
}
