//! The warden's answers to requests that an issuer, or somebody that has taken one over, sends it.

use std::fs::Permissions;

use super::*;

/// The programs of a site, with a file that may be run.
fn programs(mode: u32) -> (Programs, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let hook = folder.path().join("hook");
    std::fs::write(&hook, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&hook, Permissions::from_mode(mode)).unwrap();
    let text = format!(
        "[server]\nstate_directory = \"/var/lib/kettle\"\n\
         [[listener]]\naddress = \"0.0.0.0:443\"\n[[acme]]\nname = \"own\"\ndirectory = \"https://ca.example/\"\naccept_terms = true\nhook_timeout = \"7s\"\n\
         [[site]]\nnames = [\"*.example.org\", \"example.org\"]\n[site.acme]\nchallenges = [\"dns-01\"]\nhook = \"{0}\"\nafter = \"{0}\"\n\
         [[site.route]]\nroot = \"/srv\"\n\
         [[site]]\nnames = [\"example.com\"]\nacme = {{}}\n[[site.route]]\nroot = \"/srv\"\n",
        hook.display()
    );
    let config = kettle_config::parse(&text, Path::new("/etc/kettle/kettle.toml")).unwrap();
    (Programs::of(&config), folder)
}

fn ask(programs: &Programs, site: &str, act: Act) -> Result<Program, String> {
    let request = Request { site: site.to_owned(), act };
    programs.find(&serde_json::to_vec(&request).unwrap())
}

const DIGEST: &str = "MsijOYZxqyjGnFGwhjrhfg-Xgbl5r68WPda0J9EgqqI";

#[test]
fn a_record_is_written_as_lego_has_it_written() {
    let (programs, folder) = programs(0o755);
    let program = ask(&programs, "_wildcard.example.org", Act::Present(0, DIGEST.to_owned()));
    let program = program.unwrap();
    assert_eq!(program.path, folder.path().join("hook"));
    assert_eq!(program.arguments, ["present", "_acme-challenge.example.org.", DIGEST]);
    assert_eq!(program.time_max, Duration::from_secs(7));
    let other = ask(&programs, "_wildcard.example.org", Act::Cleanup(1, DIGEST.to_owned()));
    assert_eq!(other.unwrap().arguments[..2], ["cleanup", "_acme-challenge.example.org."]);
}

#[test]
fn what_follows_is_told_as_certbot_tells_it() {
    let (programs, _folder) = programs(0o755);
    let program = ask(&programs, "_wildcard.example.org", Act::After).unwrap();
    let lineage = "/var/lib/kettle/acme/certificates/_wildcard.example.org/current";
    let environment = [
        ("RENEWED_LINEAGE", OsString::from(lineage)),
        ("RENEWED_DOMAINS", OsString::from("*.example.org example.org")),
    ];
    assert_eq!(program.environment, environment);
    assert!(program.arguments.is_empty());
}

#[test]
fn nonsense_starts_no_program() {
    let (programs, _folder) = programs(0o755);
    for site in ["example.org", "example.com", "", "../_wildcard.example.org", "/bin/sh"] {
        assert!(ask(&programs, site, Act::After).is_err(), "{site}");
        assert!(ask(&programs, site, Act::Present(0, DIGEST.to_owned())).is_err(), "{site}");
    }
    let site = "_wildcard.example.org";
    for name in [2, usize::MAX] {
        assert!(ask(&programs, site, Act::Present(name, DIGEST.to_owned())).is_err());
    }
    let quoted = format!("'{}'", &DIGEST[2..]);
    for digest in ["", "x", &DIGEST[1..], &quoted, &format!("{}\n", &DIGEST[1..]), "$(reboot)"] {
        assert!(ask(&programs, site, Act::Present(0, digest.to_owned())).is_err(), "{digest}");
        assert!(ask(&programs, site, Act::Cleanup(0, digest.to_owned())).is_err(), "{digest}");
    }
    for bytes in ["", "{", "null", "{\"site\":\"x\",\"act\":\"Reboot\"}", "\u{0}\u{0}", "[[[[[[[["]
    {
        assert!(programs.find(bytes.as_bytes()).is_err(), "{bytes}");
    }
    assert!(programs.find(&[0xff; 4_096]).is_err());
}

#[test]
fn a_program_that_others_may_change_is_not_run() {
    for (mode, why) in [(0o757, "may change it"), (0o644, "not executable")] {
        let (programs, _folder) = programs(mode);
        let refused = ask(&programs, "_wildcard.example.org", Act::After).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    let (programs, folder) = programs(0o755);
    drop(folder);
    assert!(ask(&programs, "_wildcard.example.org", Act::After).is_err());
}
