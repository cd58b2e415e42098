//! The machine's counters as real kernels print them.

use proptest::prelude::*;

use super::*;

const STAT_TEXT: &str = "cpu  1728906 28928 218690 553016 5707 3 8208 2929 0 0\n\
    cpu0 861960 14304 104948 285874 1640 0 3027 1497 0 0\n\
    cpu1 866945 14623 113742 267142 4067 0 5180 1431 0 0\nintr 15423500 0 0\nctxt 44095924\n";
const SNMP_TEXT: &str = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
    Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs \
    RetransSegs InErrs OutRsts InCsumErrors\n\
    Tcp: 1 200 120000 -1 551805 550475 1239 276608 0 18819128 18809330 22741 0 221922 0\n\
    Udp: InDatagrams NoPorts\nUdp: 4 0\n";

#[test]
fn times_come_from_the_line_of_all_processors() {
    let times = Times::parse(STAT_TEXT).unwrap();
    let expected = Times { user: 1_757_834, system: 218_690, softirq: 8208, steal: 2929 };
    assert_eq!(times, expected);
    assert_eq!(times.of_processes(), 1_976_524);
}

#[test]
fn kernels_without_steal_time_are_odd() {
    assert_eq!(Times::parse("cpu  1 2 3 4 5 6 7\n"), None);
    assert_eq!(Times::parse("cpu0 1 2 3 4 5 6 7 8 9 10\n"), None);
}

#[test]
fn retransmits_are_found_by_name() {
    assert_eq!(retransmits(SNMP_TEXT), Some(22_741));
    assert_eq!(retransmits("Tcp: RetransSegs\n"), None);
    assert_eq!(retransmits("Tcp: Other\nTcp: 1\n"), None);
}

#[test]
fn this_machine_can_be_read() {
    let counters = Counters::read().unwrap();
    assert!(counters.times.of_processes() > 0);
}

proptest! {
    #[test]
    fn odd_text_is_no_panic(text in ".{0,200}") {
        let _ = (Times::parse(&text), retransmits(&text));
        let _ = (Times::parse(&format!("cpu {text}")), retransmits(&format!("Tcp: {text}\nTcp: {text}")));
    }
}
