use std::path::PathBuf;

use kettle_config::{
    ClientAuthMode, Config, ListenerCertificate, SendProxy, Suite, TlsListener, TlsVersion,
};
use proptest::prelude::*;

use super::vocabulary::{Argument, Context, OPTIONS, TERMS};
use super::*;
use crate::cases::{Importer, hold, listeners};
use crate::files_in_memory::{Files, shown};

const MINIMAL: &str = "pem-file = \"a.pem\"\n";

fn from_file(text: &str) -> Result<Imported, Vec<Diagnostic>> {
    import_file(Dialect::Hitch, Path::new("/etc/hitch.conf"), &Files::with("/etc/hitch.conf", text))
}

#[track_caller]
fn config(text: &str) -> Config {
    let imported = from_file(text).unwrap_or_else(|diagnostics| panic!("{}", shown(&diagnostics)));
    imported
        .config()
        .unwrap_or_else(|diagnostics| panic!("{}\n{}", shown(&diagnostics), imported.toml))
}

fn line(dialect: Dialect, words: &[&str]) -> Result<Asked, Vec<Diagnostic>> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    command_line(dialect, &words, &Files::with("/work/hitch.conf", MINIMAL))
}

#[track_caller]
fn run(dialect: Dialect, words: &[&str]) -> Imported {
    match line(dialect, words) {
        Ok(Asked::Run(imported)) => *imported,
        other => panic!("{other:?}"),
    }
}

fn tls(config: &Config, listener: usize) -> &TlsListener {
    config.listeners[listener].tls().unwrap()
}

fn chains(config: &Config, listener: usize) -> Vec<String> {
    let of = |one: &ListenerCertificate| one.chain.value.display().to_string();
    tls(config, listener).certificates.iter().map(of).collect()
}

#[test]
fn settings_and_mistakes_are_those_of_the_cases() {
    let importer = Importer {
        server: str::to_owned,
        import: from_file,
        views: &[
            ("listeners:", listeners),
            ("chains:", |it| chains(it, 0).join(" ")),
            ("told:", told),
        ],
    };
    hold("hitch.txt", &importer);
}

/// The remarks, each with its line.
fn told(config: &Config) -> String {
    let all = config.not_carried_over.iter().map(|it| format!("{}: {}", it.line, it.message));
    all.collect::<Vec<_>>().join(" | ")
}

#[test]
fn a_mark_of_unicode_before_all_is_no_setting() {
    assert_eq!(config(&format!("\u{feff}{MINIMAL}")).listeners.len(), 1);
}

fn server(config: &Config) -> String {
    config.backends[0].servers[0].address.to_string()
}

#[test]
fn certificates_stand_in_hitchs_order() {
    let text = "pem-file = \"1\" pem-file = \"2\" pem-dir = \"d\" pem-dir-glob = \"*.pem\"
        frontend = { host = \"*\" port = \"1\" }
        frontend = { port = \"2\" pem-file = \"3\" pem-file = \"4\" }
        frontend = { port = \"3\" pem-file = \"3\" match-global-certs = on }";
    let mut files = Files::with("/c", text);
    for name in ["/work/d/a.pem", "/work/d/b.pem", "/work/d/c.txt"] {
        files.0.insert(name.into(), String::new());
    }
    let config = import_file(Dialect::Hitch, Path::new("/c"), &files).unwrap().config().unwrap();
    assert_eq!(chains(&config, 0), ["/work/2", "/work/1", "/work/d/a.pem", "/work/d/b.pem"]);
    assert_eq!(chains(&config, 1), ["/work/4", "/work/3"]);
    assert_eq!(chains(&config, 2)[..2], ["/work/3", "/work/2"]);
}

#[test]
fn a_pem_file_may_be_a_block() {
    let text = "client-verify = required client-verify-ca = \"ca\"
        pem-file = { cert = \"a\" private-key = \"k\" ocsp-resp-file = \"o\" client-verify = optional client-verify-ca = \"own\" }
        pem-file = { cert = \"b\" client-verify = none }
        pem-file = \"c\"";
    let imported = from_file(text).unwrap();
    let config = imported.config().unwrap();
    let [c, b, a] = &tls(&config, 0).certificates[..] else { panic!("{}", imported.toml) };
    let asked = |one: &ListenerCertificate| {
        let asked = one.client_auth.as_ref()?;
        Some((asked.mode, asked.roots.value.display().to_string()))
    };
    assert_eq!(asked(c), Some((ClientAuthMode::Required, "/work/ca".to_owned())));
    assert_eq!(asked(b), None);
    assert_eq!(asked(a), Some((ClientAuthMode::Optional, "/work/own".to_owned())));
    assert_eq!(a.key.value, Path::new("/work/k"));
    assert_eq!(a.ocsp.as_ref().unwrap().value, Path::new("/work/o"));
}

#[test]
fn a_frontend_opens_no_certificate_that_is_everybodys() {
    let text = "client-verify = required client-verify-ca = \"ca\" backend = \"[127.0.0.1]:80\"
        pem-file = { cert = \"a\" client-verify-ca = \"ignored\" }
        frontend = { host = \"127.0.0.1\" port = \"1\" client-verify = none }
        frontend = { host = \"127.0.0.1\" port = \"2\" client-verify = none
            match-global-certs = on pem-file = \"own\" }";
    let config = from_file(text).unwrap().config().unwrap();
    let asked = |listener: usize| {
        let certificates = tls(&config, listener).certificates.iter();
        let roots = |it: &ListenerCertificate| Some(it.client_auth.as_ref()?.roots.value.clone());
        certificates.map(roots).collect::<Vec<_>>()
    };
    let demanded = Some(PathBuf::from("/work/ca"));
    assert_eq!(asked(0).as_slice(), std::slice::from_ref(&demanded));
    assert_eq!(asked(1), [None, demanded]);
}

#[test]
fn a_response_in_ocsp_dir_is_stapled() {
    // `printf %s a.pem | md5sum`
    let staple = "/var/lib/hitch/d04cfea3b3e3a91fe6c6d7dfc0f3e4c8";
    let hash = crate::openssl::name_hash("a.pem");
    let mut files = Files::with("/c", MINIMAL);
    files.0.insert(Path::new(staple).with_file_name(hash), String::new());
    let config = import_file(Dialect::Hitch, Path::new("/c"), &files).unwrap().config().unwrap();
    assert!(tls(&config, 0).certificates[0].ocsp.is_some());
    assert_eq!(crate::openssl::name_hash(""), "d41d8cd98f00b204e9800998ecf8427e");
}

#[test]
fn a_frontend_offers_its_own() {
    let text = "tls-protos = TLSv1.2 ciphers = \"EECDH+AESGCM\" pem-file = \"a\"
        frontend = { port = \"1\" tls-protos = TLSv1.3 }
        frontend = { port = \"2\" ciphers = \"ECDHE+AES128\" }
        frontend = { port = \"3\" }";
    let config = config(text);
    assert_eq!(tls(&config, 0).versions, [TlsVersion::Tls13]);
    assert_eq!(tls(&config, 0).suites, []);
    assert_eq!(tls(&config, 1).suites, [Suite::Aes128Gcm]);
    assert_eq!(tls(&config, 1).versions, [TlsVersion::Tls12]);
    assert!(tls(&config, 2).suites.is_empty() && tls(&config, 2).versions.is_empty());
    assert_eq!(config.tls.suites, [Suite::Aes128Gcm, Suite::Aes256Gcm]);
}

/// A file is for the packaged unit, which reloads by it; a command line takes SIGHUP, as hitch does.
#[test]
fn a_file_gets_the_control_socket_of_the_package_and_a_command_line_does_not() {
    let mut machine = Files::with("/etc/hitch.conf", MINIMAL);
    let import = |machine: &Files| {
        let made = import_file(Dialect::Hitch, Path::new("/etc/hitch.conf"), machine).unwrap();
        (made.config().unwrap().admin.socket, made.toml.contains("/run/kettle/admin.sock"))
    };
    assert_eq!(import(&machine), (None, true));
    machine.0.insert("/run/kettle/folder".into(), String::new());
    assert_eq!(import(&machine), (Some(PathBuf::from("/run/kettle/admin.sock")), true));
    let line = run(Dialect::Hitch, &["/a"]);
    assert!(line.config().unwrap().admin.socket.is_none() && !line.toml.contains("/run/kettle"));
}

#[test]
fn the_command_line_of_the_source_document_is_understood() {
    let words =
        "-n 2 -f 127.0.0.1,8443 -b 127.0.0.1,8080 -c ALL -B 1000 -C 20000 --write-proxy PEM";
    let imported = run(Dialect::Stud, &words.split(' ').collect::<Vec<_>>());
    let config = imported.config().unwrap();
    assert_eq!(config.server.workers, Some(2));
    assert_eq!(config.listeners[0].address.to_string(), "127.0.0.1:8443");
    assert_eq!((config.listeners[0].backlog, config.tls.session_cache), (1000, 20_000));
    assert_eq!(config.backends[0].send_proxy, SendProxy::V1);
    assert_eq!((server(&config).as_str(), config.tls.suites.len()), ("127.0.0.1:8080", 3));
    assert_eq!(chains(&config, 0), ["/work/PEM"]);
    assert!(!imported.process.refuses_root);
}

#[test]
fn the_command_line_wins_over_its_file() {
    let unit = "--user _hitch --group _hitch --config hitch.conf --quiet";
    let imported = run(Dialect::Hitch, &unit.split(' ').collect::<Vec<_>>());
    assert_eq!(imported.path, Path::new("/work/hitch.conf"));
    assert!(!imported.process.refuses_root);
    let config = imported.config().unwrap();
    assert_eq!(config.server.user.as_deref(), Some("_hitch"));
    assert_eq!(
        (config.log.level.as_str(), chains(&config, 0)),
        ("error", vec!["/work/a.pem".into()])
    );
    let with_more = ["--config=hitch.conf", "-qs", "-n3", "--daemon", "-pp", "b.pem"];
    let imported = run(Dialect::Hitch, &with_more);
    assert!(imported.process.is_daemon);
    assert_eq!(imported.process.pid_file.as_deref(), Some(Path::new("/work/p")));
    assert_eq!(chains(&imported.config().unwrap(), 0), ["/work/b.pem", "/work/a.pem"]);
    assert_eq!(imported.config().unwrap().server.workers, Some(3));
}

#[test]
fn options_are_taken_as_getopt_takes_them() {
    assert!(matches!(line(Dialect::Hitch, &["--he"]), Ok(Asked::Help)));
    assert!(matches!(line(Dialect::Hitch, &["-V"]), Ok(Asked::Version)));
    assert!(matches!(line(Dialect::Hitch, &["a.pem", "-t"]), Ok(Asked::Test(_))));
    for (words, expected) in [
        (["--nothing"].as_slice(), "no option --nothing"),
        (&["-Z"], "no option -Z"),
        (&["--write"], "may be --write-ip or --write-proxy"),
        (&["--workers"], "--workers needs a value"),
        (&["-b"], "-b needs a value"),
        (&["--test=on"], "--test takes no value"),
        (&["--daemon=yes"], "--daemon takes on or off"),
        (&["--config=none"], "cannot be read"),
        (&["--workers=x", "a"], "`workers` takes a number or auto"),
        (&["--client", "a"], "kettle originate"),
    ] {
        let diagnostics = shown(&line(Dialect::Hitch, words).unwrap_err());
        assert!(diagnostics.contains(expected), "{words:?}: {diagnostics}");
    }
}

#[test]
fn the_words_are_consistent() {
    for option in OPTIONS.iter().filter(|option| option.argument != Argument::None) {
        assert!(option.long == "config" || vocabulary::Term::find(option.key).is_some());
    }
    for term in TERMS {
        let same = TERMS.iter().filter(|other| other.name == term.name);
        assert!(same.count() == 1 && !term.contexts.is_empty(), "{}", term.name);
    }
    assert!(vocabulary::Term::names(Context::Frontend).contains(&"port"));
    assert!(usage(Dialect::Hitch).contains("--sni-nomatch-abort"));
}

/// The statements of hitch.conf, in any order and with any values.
fn statements() -> impl Strategy<Value = String> {
    let term = prop::sample::select(TERMS.iter().map(|it| it.name).collect::<Vec<_>>());
    let value = prop_oneof![
        Just("on".to_owned()),
        Just("TLSv1.2 TLSv1.3".to_owned()),
        Just("required".to_owned()),
        Just("\"[*]:443\"".to_owned()),
        Just("\"[127.0.0.1]:443+x.pem\"".to_owned()),
        Just("\"/run/x.sock\"".to_owned()),
        Just("{ port = \"1\" cert = \"a\" }".to_owned()),
        (0_u32..100_000).prop_map(|number| number.to_string()),
        "\"[ -~]{0,12}\"",
    ];
    let statement = (term, value).prop_map(|(key, value)| format!("{key} = {value}\n"));
    prop::collection::vec(statement, 0..8).prop_map(|all| all.concat())
}

proptest! {
    /// The printed text is the text that is run.
    #[test]
    fn the_text_and_the_configuration_are_the_same(text in statements()) {
        let Ok(imported) = from_file(&format!("{MINIMAL}{text}")) else { return Ok(()) };
        let Ok(used) = imported.config() else { return Ok(()) };
        let read = kettle_config::parse(&imported.toml, &imported.path).unwrap();
        prop_assert_eq!(&read.listeners, &used.listeners);
        prop_assert_eq!(&read.backends, &used.backends);
        prop_assert_eq!((&read.server, &read.tls, &read.log), (&used.server, &used.tls, &used.log));
    }

    #[test]
    fn no_text_makes_it_fail_without_a_word(text in "[ -~\n]{0,80}") {
        match from_file(&text) {
            Ok(imported) => _ = imported.config(),
            Err(diagnostics) => prop_assert!(!diagnostics.is_empty()),
        }
    }
}
