//! `/proc/PID` as real kernels write it, and as none does.

use proptest::prelude::*;

use super::*;

const CAT: &str = "15697 (cat) R 15691 15691 11181 0 -1 4194304 99 0 0 0 12 34 5 6 20 0 1 0 1276629 3133440 382 \
    18446744073709551615 94491016638464 94491016658345 140735592246992 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 94491016674352 \
    94491016675968 94491277045760 140735592249855 140735592249875 140735592249875 140735592251371 0\n";
const KSOFTIRQD: &str = "15 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 1520 0 0 20 0 1 0 30 0 0 18446744073709551615 0 \
    0 0 0 0 0 0 2147483647 0 1 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

#[test]
fn fields_are_counted_behind_the_name() {
    let stat = Stat::parse(CAT).unwrap();
    assert_eq!(stat.name, "cat");
    assert_eq!(stat.parent, 15691);
    assert_eq!(stat.user, Duration::from_millis(120));
    assert_eq!(stat.system, Duration::from_millis(340));
    assert_eq!(stat.children, Duration::from_millis(110));
    assert_eq!(stat.started, 1_276_629);
    assert!(!stat.is_kernel);
}

#[test]
fn a_name_may_hold_parentheses_and_spaces() {
    let stat = Stat::parse(&CAT.replace("(cat)", "(nginx: (old) 1 2)")).unwrap();
    assert_eq!((stat.name.as_str(), stat.parent), ("nginx: (old) 1 2", 15691));
}

#[test]
fn threads_of_the_kernel_are_known_by_their_flag() {
    let stat = Stat::parse(KSOFTIRQD).unwrap();
    assert!(stat.is_kernel);
    assert_eq!(stat.system, Duration::from_millis(15_200));
}

#[test]
fn this_process_reads_itself() {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    assert!(Stat::parse(&text).is_some());
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    assert!(switches(&text).is_some());
}

#[test]
fn both_kinds_of_switches_count() {
    let text = "Name:\tkettle\nThreads:\t3\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
    assert_eq!(switches(text), Some(157));
    assert_eq!(switches("Name:\tkettle\n"), None);
}

proptest! {
    #[test]
    fn odd_text_is_no_panic(text in ".{0,200}", cut in 0_usize..400) {
        let _ = (Stat::parse(&text), switches(&text));
        let cut: String = CAT.chars().take(cut).collect();
        let _ = Stat::parse(&format!("{cut}{text}"));
    }
}
