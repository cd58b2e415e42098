//! The unit that packages bring, beside the sandbox that a server gives itself: what one lets the other must not need.

use std::collections::BTreeSet;

use super::*;

const UNIT: &str = include_str!("../../../../packaging/kettle.service");
const SANDBOX: &str = include_str!("../../../../crates/kernel/src/sandbox/calls.rs");

/// The values of a setting, in the order of their lines.
fn settings(name: &str) -> impl Iterator<Item = &'static str> {
    UNIT.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix('='))
}

/// The system calls that systemd means by this name, which may be that of a group.
fn meant_by(name: &str) -> BTreeSet<String> {
    if !name.starts_with('@') {
        return BTreeSet::from([name.to_owned()]);
    }
    let said = Tool::new("systemd-analyze").args(["--no-pager", "syscall-filter", name]).succeed();
    let names = said.lines().skip(1).map(str::trim);
    let names = names.filter(|name| !name.is_empty() && !name.starts_with('#'));
    names.flat_map(meant_by).collect()
}

#[test]
fn the_unit_is_not_started_again_for_a_mistake_in_its_configuration() {
    let (_, folder) = Setup::default().lay_out();
    folder.write("wrong.toml", "[sever]\nworkers = 1\n");
    for name in ["wrong.toml", "none.toml"] {
        let ended = Tool::kettle(["run", &folder.path(name).display().to_string()]).output();
        let code = ended.status.code().unwrap().to_string();
        assert_eq!(settings("RestartPreventExitStatus").collect::<Vec<_>>(), [code], "{name}");
    }
    // The next start may find what this one does not.
    folder.change_config("root = ", "root = \"gone\" #");
    let ended = Tool::kettle(["run", &folder.config().display().to_string()]).output();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
}

#[test]
fn a_configuration_without_a_word_of_it_is_reloaded_by_the_unit() {
    assert_eq!(settings("RuntimeDirectory").collect::<Vec<_>>(), ["kettle"]);
    let reload = settings("ExecReload").collect::<Vec<_>>();
    assert_eq!(reload, ["/usr/bin/kettle ctl reload --config /etc/kettle/kettle.toml"]);
    let (_, folder) = Setup::default().lay_out();
    folder.change_config("[admin]\nsocket = \"admin.sock\"\n", "");
    folder.write("run/is_made", "");
    let socket = folder.path("run/admin.sock");
    let made = folder.path("run");
    let run = folder.kettle("run");
    let server = run.environment("RUNTIME_DIRECTORY", made.display().to_string()).start();
    server.stderr.wait_for("listening on");
    let reload = || Tool::kettle(["ctl", "reload", "--socket"]).args([&socket]).output();
    let said = reload();
    assert!(said.status.success() && said.text().contains("reloaded"), "{}", said.stderr);
    folder.change_config("names = [\"localhost\"]", "names = 7");
    assert!(reload().stderr.contains("the configuration has mistakes"));
}

#[test]
fn the_unit_lets_all_system_calls_that_the_sandbox_lets() {
    if !has("systemd-analyze") {
        return;
    }
    let mut let_by_unit = BTreeSet::new();
    for filter in settings("SystemCallFilter") {
        let (is_taken_away, names) = match filter.strip_prefix('~') {
            Some(names) => (true, names),
            None => (false, filter),
        };
        for call in names.split(' ').flat_map(meant_by) {
            if is_taken_away {
                let_by_unit.remove(&call);
            } else {
                let_by_unit.insert(call);
            }
        }
    }
    let (lists, ending) = SANDBOX.split_once("const NEVER").unwrap();
    let named = |text: &'static str| text.split("libc::SYS_").skip(1);
    let name = |rest: &str| {
        rest.split(|it: char| !it.is_alphanumeric() && it != '_').next().unwrap().to_owned()
    };
    // Nothing of ours asks which pages are in memory.
    let is_missing = |it: &String| it != "mincore" && !let_by_unit.contains(it);
    let missing: Vec<_> = named(lists).map(name).filter(is_missing).collect();
    assert!(missing.is_empty(), "the unit refuses {missing:?}");
    assert!(let_by_unit.contains("landlock_restrict_self") && let_by_unit.contains("seccomp"));
    assert!(named(lists).count() > 100 && named(ending).count() > 30);
}
