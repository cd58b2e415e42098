//! Which words of hitch.conf and stunnel.conf become no listener of kettle though the originals take them: each is imported, and where
//! nothing comes of it the original is asked.

use std::fmt::Write;

use kettle_tests::transcript::contains;

use super::*;

/// The words, one a line, that the original takes though their configuration is imported to no listener; and how many were tried. Of each
/// the reason is said, and what to write instead.
fn left_out(kind: &str, cases: &str, takes: impl Fn(&Path) -> bool) -> (String, usize) {
    let folder = TempDir::new().unwrap();
    let place = folder.path().to_str().unwrap();
    let issued = issue(&["localhost"], Kind::Rsa);
    for (name, text) in [
        ("both.pem", format!("{}{}", issued.key, issued.chain)),
        ("key.pem", issued.key),
        ("roots.pem", issued.chain),
        ("psk", "a:0123456789012345678901234567890123456789\n".to_owned()),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::create_dir(folder.path().join("more")).unwrap();
    fs::copy(folder.path().join("both.pem"), folder.path().join("more/both.pem")).unwrap();
    let mut left = String::new();
    let mut count = 0;
    let mut base = "";
    for line in cases.lines().filter(|line| !line.is_empty()) {
        if let Some(begun) = line.strip_prefix("= ") {
            base = begun;
            continue;
        }
        let address = unused_address();
        let text = base
            .replace("LINE", line)
            .replace(" | ", "\n")
            .replace("FOLDER", place)
            .replace("FRONTEND", &format!("[{}]:{}", address.ip(), address.port()))
            .replace("ADDRESS", &address.to_string());
        let path = folder.path().join("conf");
        fs::write(&path, text + "\n").unwrap();
        count += 1;
        let made = Tool::kettle(["import", kind]).args([&path]).output();
        if !made.text().contains("[[listener]]") && takes(&path) {
            let said = |it: &str| it.contains("is left out") || it.starts_with("error: ");
            let mut blocks = made.stderr.split("\n\n").filter(|it| said(it));
            let is_said = blocks.any(|it| it.contains("\nhelp: ") && it.contains("write "));
            assert!(is_said, "{line}: {}", made.stderr);
            writeln!(left, "{line}").unwrap();
        }
    }
    (left, count)
}

fn is_there(program: &str) -> bool {
    let is_there = Path::new(program).exists();
    if !is_there {
        skip(&format!("there is no {program} here"));
    }
    is_there
}

#[test]
fn what_hitch_takes_is_taken_but_for_versions_and_curves_that_kettle_has_not() {
    let hitch = "/usr/sbin/hitch";
    if !is_there(hitch) {
        return;
    }
    let takes = |path: &Path| {
        let ended = Tool::new(hitch).args(["--test", "--config"]).args([path]).output();
        ended.status.success()
    };
    let (left, count) = left_out("hitch", HITCH, takes);
    assert_eq!(left, "tls-protos = SSLv3\necdh-curve = \"X448\"\n");
    assert_eq!(count, 68);
}

/// A service that would become laxer, or speaks what kettle does not, is left out.
#[test]
fn what_stunnel_takes_is_taken_but_for_the_services_that_are_named_here() {
    let stunnel = "/usr/bin/stunnel4";
    if !is_there(stunnel) {
        return;
    }
    let takes = |path: &Path| {
        let running = Tool::new(stunnel).args([path]).start();
        running.stderr.wait_until("what stunnel says of its file", |said| {
            let has = |word: &str| contains(said, format!("Configuration {word}").as_bytes());
            (has("successful") || has("failed")).then(|| has("successful"))
        })
    };
    let (left, count) = left_out("stunnel", STUNNEL, takes);
    assert_eq!(left, STUNNEL_LEFT);
    assert_eq!(count, 123);
    let page = include_str!("../../../../docs/migrating.md");
    for word in STUNNEL_LEFT.lines().filter_map(|line| line.split(" = ").next()) {
        assert!(page.contains(&format!("`{word}")), "migrating.md says nothing of {word}");
    }
}

/// A line that begins with `= ` says what is around the lines behind it; `|` ends a line.
const HITCH: &str = include_str!("originals/hitch.txt");
const STUNNEL: &str = include_str!("originals/stunnel.txt");
/// Those of services that end TLS, and behind `exec` of those that begin it.
const STUNNEL_LEFT: &str = include_str!("originals/stunnel_left.txt");
