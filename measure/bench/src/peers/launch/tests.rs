//! The common part of the start of all servers.

use super::*;

#[test]
fn last_words_are_the_end_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    fs::write(&log, format!("{}\nbind() failed\n", "x".repeat(10_000))).unwrap();
    let said = last_words(&log);
    assert!(said.ends_with("bind() failed") && said.len() <= SAID_BYTES_MAX, "{said}");
    assert_eq!(last_words(&folder.path().join("none")), "");
}

#[test]
fn a_command_is_told_with_its_variables() {
    let mut command = Command::new("/linker");
    command.arg("/nginx").env("OPENSSL_CONF", "/ssl");
    assert_eq!(words(&command), ["OPENSSL_CONF=/ssl", "/linker", "/nginx"]);
}

#[test]
fn a_process_starts_on_the_processors_it_is_given() {
    let cpu = process::cpus_allowed()[0];
    let mut command = Command::new("sleep");
    let mut child = spawn_apart(command.arg("60"), &[cpu]).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    exit::stop_group(&mut child);
    assert_eq!(list.trim(), cpu.to_string());
    assert!(process::cpus_allowed().contains(&cpu));
}
