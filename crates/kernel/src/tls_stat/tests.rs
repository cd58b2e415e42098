//! The form of the kernel's file.

use super::*;

#[test]
fn counters_are_read_by_name() {
    let stat = TlsStat::parse("TlsCurrTxSw                     \t2\nTlsTxSw\t17\nodd\n\nbad x\n");
    assert_eq!(stat.count("TlsTxSw"), 17);
    assert_eq!(stat.count("TlsCurrTxSw"), 2);
    assert_eq!(stat.count("TlsRxSw"), 0);
    assert_eq!(stat.iter().count(), 2);
}
