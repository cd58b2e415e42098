//! Memory as the kernel tells of it.

use proptest::prelude::*;

use super::*;

#[test]
fn lines_in_kibibytes_are_found_by_name() {
    let text = "Mapped:            10884 kB\nKReclaimable:     401924 kB\nSlab:             442348 kB\nSReclaimable:     401924 kB\n";
    assert_eq!(kibibytes(text, "Slab:"), Some(442_348 * 1024));
    assert_eq!(kibibytes(text, "Pss:"), None);
    assert_eq!(kibibytes("Slab: 5\n", "Slab:"), None);
    assert_eq!(kibibytes(&format!("Slab: {} kB\n", u64::MAX), "Slab:"), None);
}

#[test]
fn pages_of_tcp_are_found_by_name() {
    let text = "sockets: used 17\nTCP: inuse 1 orphan 0 tw 2 alloc 1 mem 247\nUDP: inuse 0 mem 9\n";
    assert_eq!(tcp_pages(text), Some(247));
    assert_eq!(tcp_pages("TCP: inuse 1\n"), None);
    assert_eq!(tcp_pages("UDP: inuse 0 mem 9\n"), None);
}

#[test]
fn this_process_holds_memory() {
    let memory = Memory::read(&[std::process::id()]).unwrap();
    assert!(memory.pss_bytes > 100_000, "{memory:?}");
    assert!(memory.kernel_bytes > 100_000, "{memory:?}");
    assert!(page_bytes().is_power_of_two());
}

#[test]
fn memory_that_is_used_shows() {
    let before = Memory::read(&[std::process::id()]).unwrap();
    let block = std::hint::black_box(vec![1_u8; 64 << 20]);
    let after = Memory::read(&[std::process::id()]).unwrap();
    drop(block);
    assert!(after.pss_bytes > before.pss_bytes + (32 << 20), "{before:?} {after:?}");
}

#[test]
fn a_process_that_ended_is_an_error() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let process = child.id();
    child.wait().unwrap();
    assert_eq!(Memory::read(&[process]), Err(gone(process)));
}

proptest! {
    #[test]
    fn odd_text_is_no_panic(text in "(?s).{0,100}") {
        let _ = (kibibytes(&text, ""), kibibytes(&format!("Pss:{text}"), "Pss:"));
        let _ = (tcp_pages(&text), tcp_pages(&format!("TCP:{text}")), tcp_pages(&format!("TCP: mem {text}")));
    }
}
