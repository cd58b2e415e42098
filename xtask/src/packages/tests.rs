use super::*;

#[test]
fn a_package_counts_only_when_it_is_installed() {
    let answer = "curl installed\nkmod not-installed\nstrace config-files\ngcc-12 installed\n";
    assert_eq!(missing_in(answer, &["curl", "kmod", "strace", "gcc"]), ["kmod", "strace", "gcc"]);
}
