//! Programs: those that write records in the DNS, and those that are told of new certificates.

use tempfile::TempDir;

use super::*;

/// A program, in a folder that nobody else may write, and a file there that it may write to.
struct Script {
    folder: TempDir,
    path: PathBuf,
}

impl Script {
    /// In this text LOG is that file.
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hook");
        let log = folder.path().join("log").display().to_string();
        fs::write(&path, format!("#!/bin/sh\n{}", text.replace("LOG", &log))).unwrap();
        let script = Self { folder, path };
        script.allow(0o755);
        script
    }

    /// Writes records as pebble's name server takes them.
    fn of_records(pebble: &Pebble, more: &str) -> Self {
        let url = pebble.records_url();
        Self::new(&format!(
            "echo \"$@\" >>LOG\n{more}\ncase $1 in\n\
             present) curl -sSf -d \"{{\\\"host\\\": \\\"$2\\\", \\\"value\\\": \\\"$3\\\"}}\" {url}/set-txt;;\n\
             cleanup) curl -sSf -d \"{{\\\"host\\\": \\\"$2\\\"}}\" {url}/clear-txt;;\nesac\n"
        ))
    }

    fn allow(&self, mode: u32) {
        fs::set_permissions(&self.path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// The lines that it has written.
    fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn hook(&self) -> String {
        let path = self.path.display();
        format!("challenges = [\"dns-01\"]\nhook = \"{path}\"\npropagation = \"0s\"")
    }
}

fn fetching(setup: &PebbleSetup, more: &str) -> kettle_tests::setup::Setup {
    fetching_from(setup, more, &setup.table("pebble", "hook_timeout = \"5s\""))
}

#[test]
fn names_with_a_star_are_validated_by_records() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let script = Script::of_records(&pebble, "echo here $(ls /proc/self/fd | wc -l)");
    let kettle = Kettle::start(fetching(&setup, &script.hook()));
    wait_until_served(&kettle, &pebble);
    let said = kettle.messages().text();
    assert!(said.contains("pebble, 90 days, dns-01") && said.contains("says: here 4"), "{said}");
    wait_until("the record is taken away", || script.log().len() == 2);
    let log = script.log();
    let value = log[0].strip_prefix("present _acme-challenge.localhost. ").unwrap();
    assert_eq!(value.len(), 43);
    assert_eq!(log[1], format!("cleanup _acme-challenge.localhost. {value}"));
    // Two values of one name, and another name.
    let before = current(&kettle);
    let names = "[\"localhost\", \"*.site.example\", \"site.example\"]";
    reload_with(&kettle, "names = [\"localhost\"]", &format!("names = {names}"));
    wait_until("the new certificate is there", || current(&kettle) != before);
    let chain = kettle.folder.path("state/acme/certificates/localhost/current/chain.pem");
    let text = Tool::new("openssl").args(["x509", "-noout", "-ext", "subjectAltName", "-in"]);
    let text = text.args([chain]).succeed();
    assert!(text.contains("DNS:*.site.example") && text.contains("DNS:site.example"), "{text}");
    wait_until("records are taken away", || {
        script.log().iter().filter(|line| line.starts_with("cleanup")).count() == 4
    });
}

#[test]
fn a_program_that_fails_is_told_of_with_its_reason() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    for (more, told) in [
        ("echo no such zone >&2; exit 4", "for `present` of localhost ended with status 4"),
        ("kill -9 $$", "was ended by signal 9"),
        ("[ $1 = cleanup ] || sleep 600", "did not end within 5s"),
    ] {
        let script = Script::of_records(&pebble, more);
        let kettle = Kettle::start(fetching(&setup, &script.hook()));
        kettle.messages().wait_for(told);
        if more.contains("zone") {
            assert!(kettle.messages().text().contains("says: no such zone"));
        }
        // A record that may be there in part is taken away.
        wait_until("it is asked to clean up", || script.log().len() == 2);
    }
    assert_eq!(pebble.lines_with("Issued certificate"), 0);
}

#[test]
fn a_program_that_others_may_write_is_not_run() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let script = Script::of_records(&pebble, "");
    script.allow(0o777);
    let kettle = Kettle::start(fetching(&setup, &script.hook()));
    kettle.messages().wait_for("may change it");
    assert_eq!(script.log(), [""; 0]);
    // Before anything is started that is said, too.
    let checked = Tool::kettle(["check"]).args([kettle.folder.config()]).output();
    let said = format!("{}{}", checked.text(), checked.stderr);
    assert!(said.contains("hook is not run") && said.contains("may change it"), "{said}");
}

#[test]
fn a_program_may_open_as_many_files_as_kettle_at_its_start() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let script = Script::of_records(&pebble, "echo files $(ulimit -Sn)");
    let own = fetching(&setup, &script.hook()).launched_by(&["prlimit", "--nofile=777:"]);
    let kettle = Kettle::start(own);
    wait_until_served(&kettle, &pebble);
    assert!(kettle.messages().text().contains("says: files 777"), "{}", kettle.messages().text());
}

#[test]
fn a_program_that_says_much_keeps_nothing_up() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let script = Script::of_records(&pebble, "head -c 1000000 /dev/zero | tr '\\0' x");
    let kettle = Kettle::start(fetching(&setup, &script.hook()));
    wait_until_served(&kettle, &pebble);
    let text = kettle.messages().text();
    let line = text.lines().find(|line| line.contains("says: xxx")).unwrap();
    assert!(line.len() < 5_000, "{}", line.len());
}

#[test]
fn a_program_is_run_once_after_a_new_certificate() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let script = Script::new("echo $RENEWED_DOMAINS $RENEWED_LINEAGE $# >>LOG");
    let more = format!("after = \"{}\"", script.path.display());
    let mut kettle = Kettle::start(fetching(&setup, &more));
    wait_until_served(&kettle, &pebble);
    kettle.messages().wait_for("what is to be done after a certificate of localhost came is done");
    let lineage = kettle.folder.path("state/acme/certificates/localhost/current");
    assert_eq!(script.log(), [format!("localhost {} 0", lineage.display())]);
    assert!(lineage.join("chain.pem").is_file());
    // An interrupted order is made up for.
    let due = kettle.folder.path("state/acme/orders/localhost/after");
    wait_until("it is noted", || !due.exists());
    fs::write(&due, "").unwrap();
    kettle.restart();
    wait_until("it is run", || script.log().len() == 2 && !due.exists());
}

#[test]
fn programs_end_with_the_server() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let script = Script::of_records(&pebble, "sleep 600");
    let table = setup.table("pebble", "");
    let mut kettle = Kettle::start(fetching_from(&setup, &script.hook(), &table));
    wait_until("it runs", || script.log().len() == 1);
    let hook = child_of(child_of(kettle.process(), "kettle-warden"), "hook");
    kettle.kill();
    wait_until("it is gone", || !fs::exists(format!("/proc/{hook}")).unwrap());
}
