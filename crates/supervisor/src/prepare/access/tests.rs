use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};

use kettle_skip::skip;

use super::*;

/// A folder that everybody may enter, with one thing in it that only root may use.
struct Stage(tempfile::TempDir);

impl Stage {
    fn new() -> Self {
        let stage = Self(tempfile::tempdir().unwrap());
        stage.allow("", 0o755);
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn allow(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).unwrap();
    }

    fn folder(&self, name: &str, mode: u32) {
        fs::create_dir(self.path(name)).unwrap();
        self.allow(name, mode);
    }

    fn file(&self, name: &str, mode: u32) {
        fs::write(self.path(name), "x").unwrap();
        self.allow(name, mode);
    }

    fn config(&self, user: &str, log: &str, site: &str, route: &str) -> Config {
        let text = format!(
            "[server]\nuser = \"{user}\"\nstate_directory = \"state\"\n[log]\naccess = \"{log}\"\n\
             [[listener]]\naddress = \"127.0.0.1:8443\"\n[[site]]\nnames = [\"a\"]\n{site}\n\
             [[site.route]]\nroot = \"www\"\n{route}\n"
        );
        kettle_config::parse(&text, &self.path("kettle.toml")).unwrap()
    }

    /// Takes away what `nobody` would not be able to do, with paths as the configuration names them.
    /// To the user that serves: root alone does not choose what is there any more.
    fn give_away(&self) {
        chown(self.path(""), Some(65_534), None).unwrap();
    }

    fn found(&self, config: &Config) -> Vec<String> {
        let mut diagnostics = Diagnostics::default();
        check(config, account(config).unwrap().as_ref(), &mut diagnostics);
        let prefix = format!("{}/", self.0.path().display());
        let shown = |diagnostic: &Diagnostic| {
            let help = diagnostic.help.as_deref().unwrap_or_default();
            format!("{} -> {help}", diagnostic.message).replace(&prefix, "")
        };
        diagnostics.serious.iter().map(shown).collect()
    }
}

const CERTIFICATE: &str = "[[site.certificate]]\nchain = \"live/chain\"\nkey = \"live/key\"";

#[test]
fn the_folder_of_a_cache_that_root_makes_at_a_start_is_not_missed() {
    if !process::is_root() {
        return skip("only root can become somebody else");
    }
    let stage = Stage::new();
    stage.folder("www", 0o755);
    stage.folder("live", 0o755);
    stage.file("live/chain", 0o644);
    stage.file("live/key", 0o644);
    let cache = |directory: &str| format!("[[cache]]\nname = \"c\"\ndirectory = \"{directory}\"");
    let found = |stage: &Stage, directory: &str| {
        stage.found(&stage.config("nobody", "off", CERTIFICATE, &cache(directory)))
    };
    assert_eq!(found(&stage, "kept"), [""; 0]);
    // It makes nothing where somebody else could have put something in its way, and nothing below what is missing.
    let below = found(&stage, "no/kept");
    assert!(below.len() == 1 && below[0].contains("may not keep files in no/kept"), "{below:#?}");
    chown(stage.path(""), Some(1), None).unwrap();
    let of_another = found(&stage, "kept");
    assert!(
        of_another.iter().any(|it| it.contains("may not keep files in kept")),
        "{of_another:#?}"
    );
}

#[test]
fn what_root_makes_of_a_new_machine_is_not_missed() {
    if !process::is_root() {
        return skip("only root can become somebody else");
    }
    let stage = Stage::new();
    for folder in ["www", "live", "log"] {
        stage.folder(folder, 0o755);
    }
    stage.file("live/chain", 0o644);
    stage.file("live/key", 0o644);
    let of_bodies = "[[site.route]]\nprefix = \"/up/\"\nbackend = \"b\"\nrequest_buffering = \"all\"\n\
                     [[backend]]\nname = \"b\"\n[[backend.server]]\naddress = \"127.0.0.1:1\"";
    let config = stage.config("nobody", "log/access.log", CERTIFICATE, of_bodies);
    assert!(config.stores_bodies());
    assert_eq!(stage.found(&config), [""; 0]);
    stage.folder("state", 0o700);
    let found = stage.found(&config);
    assert!(found.len() == 1 && found[0].contains("may not keep files in state"), "{found:#?}");
}

#[test]
fn each_permission_that_is_missing_is_found_with_its_command() {
    if !process::is_root() {
        return skip("only root can become somebody else");
    }
    let stage = Stage::new();
    stage.folder("www", 0o700);
    stage.folder("live", 0o700);
    stage.folder("archive", 0o755);
    stage.file("archive/key1", 0o600);
    stage.file("live/chain", 0o644);
    std::os::unix::fs::symlink("../archive/key1", stage.path("live/key")).unwrap();
    stage.folder("log", 0o755);
    let config = stage.config("nobody", "log/access.log", CERTIFICATE, "");
    // A file that only root chooses the keeper reads, and a start as root gives the log away.
    let found = stage.found(&config);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("may not open files in www"), "{}", found[0]);
    stage.give_away();
    let found = stage.found(&config);
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(found[0].contains("may not read live/chain (because of live)"), "{}", found[0]);
    let gid = Account::find("nobody", None).unwrap().gid();
    let group = group_name(gid);
    let advice = format!("-> `chgrp {group} live && chmod g+x live`");
    assert!(found[0].contains(&advice), "{}", found[0]);
    assert!(found[1].contains("may not read live/key (because of live)"), "{}", found[1]);
    assert!(found[2].contains("may not open files in www: requests get 403"), "{}", found[2]);
    assert!(found[3].contains("may not write to log/access.log (because of log)"), "{}", found[3]);
    assert!(found[3].contains("install -d -o nobody"), "{}", found[3]);
    stage.allow("log", 0o700);
    let closed = stage.found(&config);
    assert_eq!(closed[3], found[3], "to be let in would not be enough");
    assert!(closed.iter().all(|it| it.contains(KEYS_PAGE) == it.contains("live")), "{closed:#?}");
    stage.allow("log", 0o755);

    // The advice mends one after the other.
    chown(stage.path("live"), None, Some(gid)).unwrap();
    stage.allow("live", 0o710);
    let found = stage.found(&config);
    let advice = format!("`chgrp {group} live/key && chmod g+r live/key`");
    assert!(found[0].contains(&advice), "{found:#?}");
    chown(stage.path("archive/key1"), None, Some(gid)).unwrap();
    stage.allow("live/key", 0o640);
    stage.allow("www", 0o755);
    chown(stage.path("log"), Some(65_534), None).unwrap();
    assert_eq!(stage.found(&config), [""; 0]);

    // A log that is there is opened, and a listing reads its folder.
    stage.file("log/access.log", 0o640);
    stage.allow("www", 0o711);
    let config = stage.config("nobody", "log/access.log", CERTIFICATE, "listing = true");
    let found = stage.found(&config);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].contains("may not list www") && found[0].contains("chmod g+rx www"));
    assert!(found[1].contains("-> `chown nobody log/access.log`"), "{}", found[1]);
    let own = "access_log = \"log/access.log\"";
    let of_route = stage.found(&stage.config("nobody", "off", CERTIFICATE, own));
    assert_eq!(of_route, found[1..]);
}

#[test]
fn the_keeper_may_read_all_that_a_reload_reads() {
    let text = "[tls]\nticket_secret = \"secret\"\n[[listener]]\naddress = \"127.0.0.1:1\"\nkind = \"tls\"\n\
                backend = \"a\"\n[[backend]]\nname = \"a\"\n[[backend.server]]\naddress = \"127.0.0.1:2\"\n\
                [backend.tls]\nname = \"a\"\nroots = \"roots\"\ncertificate = { chain = \"chain\", key = \"own\" }\n\
                [[site]]\nnames = [\"a\"]\nself_signed = true\n";
    let config = kettle_config::parse(text, Path::new("/a/kettle.toml")).unwrap();
    let read: Vec<_> = files_read(&config).collect();
    assert_eq!(config.watched_files().len(), 4);
    for file in config.watched_files() {
        assert!(read.iter().any(|it| it == file), "{}", file.display());
    }
}

#[test]
fn a_generated_certificate_needs_a_folder_of_the_users() {
    if !process::is_root() {
        return skip("only root can become somebody else");
    }
    let stage = Stage::new();
    stage.folder("www", 0o755);
    let config = stage.config("nobody", "off", "self_signed = true", "");
    let found = stage.found(&config);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("may not keep files in state"), "{}", found[0]);
    stage.folder("state", 0o700);
    assert_eq!(stage.found(&config).len(), 1);
    chown(stage.path("state"), Some(65_534), None).unwrap();
    assert_eq!(stage.found(&config), [""; 0]);
}

#[test]
fn a_group_that_may_is_joined_rather_than_changed() {
    if !process::is_root() {
        return skip("only root can become somebody else");
    }
    let stage = Stage::new();
    stage.folder("www", 0o755);
    stage.folder("live", 0o710);
    stage.file("live/chain", 0o644);
    stage.file("live/key", 0o640);
    let daemon = Account::find("daemon", None).unwrap().gid();
    chown(stage.path("live"), None, Some(daemon)).unwrap();
    stage.give_away();
    let found = stage.found(&stage.config("nobody", "off", CERTIFICATE, ""));
    assert!(found[0].contains("-> `usermod -aG daemon nobody`"), "{found:#?}");
}

#[test]
fn only_root_and_the_user_itself_can_serve_as_it() {
    if !process::is_root() {
        return skip("only root can become somebody else");
    }
    let stage = Stage::new();
    stage.folder("www", 0o755);
    let config = |user| stage.config(user, "off", "self_signed = true", "");
    let nobody = Account::find("nobody", None).unwrap();
    let own = config("nobody");
    assert!(nobody.ask(|| account(&own).unwrap().unwrap().is_current()).unwrap());
    let other = config("daemon");
    let mistakes = nobody.ask(|| account(&other)).unwrap().unwrap_err();
    assert_eq!((mistakes.len(), mistakes[0].line, mistakes[0].column), (1, 2, 8));
    assert!(mistakes[0].message.contains("only root can become the user `daemon`"));
}

#[test]
fn anybody_can_check_what_another_user_will_serve() {
    if !process::is_root() {
        return skip("only root can become somebody else");
    }
    let stage = Stage::new();
    stage.folder("www", 0o755);
    stage.folder("log", 0o755);
    let found = |user: &str| {
        let config = stage.config(user, "log/access.log", "self_signed = true", "");
        let report = || crate::prepare::check(&config);
        Account::find("nobody", None).unwrap().ask(report).unwrap()
    };
    // Not `nobody` will write the log.
    let report = found("daemon");
    assert_eq!(report.mistakes, []);
    let [warning] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
    assert_eq!((warning.line, warning.column), (2, 8));
    assert!(warning.message.contains("what the user `daemon` may read and write is not tried"));
    let report = found("nobody");
    assert_eq!((report.mistakes.len(), report.warnings.len()), (2, 0), "{report:?}");
    assert!(report.mistakes[0].message.contains("may not keep files in"), "{report:?}");
    let report = found("nobody-has-this-name");
    assert!(report.mistakes[0].message.contains("nobody-has-this-name"), "{report:?}");
}

#[test]
fn what_a_reload_reads_is_needed_too() {
    if !process::is_root() {
        return skip("only root can become somebody else");
    }
    let stage = Stage::new();
    stage.folder("www", 0o755);
    stage.folder("pems", 0o711);
    stage.file("kettle.toml", 0o600);
    let mut config = stage.config("nobody", "log", "self_signed = true", "");
    config.log.access = LogTarget::Off;
    config.server.state_directory = "/tmp".into();
    config.folders_read = vec![stage.path("pems")];
    assert_eq!(stage.found(&config), [""; 0], "a keeper would read it");
    stage.give_away();
    let found = stage.found(&config);
    let [of_file, of_folder] = &found[..] else { panic!("{found:?}") };
    assert!(of_file.contains("may not read kettle.toml: the next reload fails"), "{of_file}");
    assert!(of_folder.contains("may not list pems: the next reload fails"), "{of_folder}");
}
