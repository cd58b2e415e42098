use super::*;

#[test]
fn the_version_is_found_and_judged() {
    let text = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)\nCopyright";
    assert_eq!(version_in(text).unwrap(), "7.2.22");
    assert!(is_supported("7.2.22") && is_supported("8.1.0"));
    assert!(!is_supported("8.2.2") && !is_supported("10.0.8") && !is_supported("7.1.0"));
}

#[test]
fn all_programs_build_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let counter = Counter::build(folder.path().join("counter")).unwrap();
    assert!(counter.programs().iter().all(|program| program.is_file()));
    assert!(counter.plugin().unwrap().contains("counter.so,out=/"));
}
