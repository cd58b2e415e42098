use kettle_config::{Balance, ClientAuthMode, Config, Roots, SendProxy, StartTls, TlsVersion};
use proptest::prelude::*;

use super::*;
use crate::files_in_memory::{Files, shown};

fn from(text: &str) -> Result<Imported, Vec<Diagnostic>> {
    import_file(Path::new("/etc/stunnel.conf"), &Files::with("/etc/stunnel.conf", text))
}

#[track_caller]
fn config(text: &str) -> Config {
    let imported = from(text).unwrap_or_else(|diagnostics| panic!("{}", shown(&diagnostics)));
    imported
        .config()
        .unwrap_or_else(|diagnostics| panic!("{}\n{}", shown(&diagnostics), imported.toml))
}

type Test = fn(&Config) -> bool;

#[test]
fn each_option_of_a_server_does_what_stunnel_does() {
    let table: [(&str, Test); 28] = [
        ("", |it| it.listeners[0].address.to_string() == "0.0.0.0:993"),
        ("accept = ::1:443", |it| it.listeners[0].address.to_string() == "[::1]:443"),
        ("accept = :::443", |it| it.listeners[0].address.to_string() == "[::]:443"),
        ("", |it| it.backends[0].servers[0].address.to_string() == "localhost:143"),
        ("key = /k", |it| {
            it.listeners[0].tls().unwrap().certificates[0].key.value == Path::new("/k")
        }),
        ("verifyChain = yes\nCAfile = /ca", |it| mode(it) == Some(ClientAuthMode::Required)),
        ("verifyChain = yes\nrequireCert = no\nCAfile = /ca\nCApath = /cas", |it| {
            mode(it) == Some(ClientAuthMode::Required)
        }),
        ("verifyChain = yes\nrequireCert = yes\nCAfile = /ca", |it| {
            mode(it) == Some(ClientAuthMode::Required)
        }),
        ("verify = 2\nCAfile = /ca", |it| mode(it) == Some(ClientAuthMode::Required)),
        ("protocol = smtp", |it| it.listeners[0].tls().unwrap().starttls == StartTls::Smtp),
        ("protocol = imap", |it| it.listeners[0].tls().unwrap().starttls == StartTls::Imap),
        ("protocol = pop3", |it| it.listeners[0].tls().unwrap().starttls == StartTls::Pop3),
        ("protocol = proxy", |it| it.backends[0].send_proxy == SendProxy::V1),
        ("sslVersionMin = TLSv1.3", |it| versions(it) == [TlsVersion::Tls13]),
        ("sslVersion = TLSv1.2", |it| versions(it) == [TlsVersion::Tls12]),
        ("options = NO_TLSv1_3\noptions = NO_SSLv3", |it| versions(it) == [TlsVersion::Tls12]),
        ("options = NO_TLSv1_2\noptions = NO_TLSv1_3\noptions = -NO_TLSv1_2", |it| {
            versions(it) == [TlsVersion::Tls12]
        }),
        ("options = NO_TLSv1.2", |it| versions(it) == [TlsVersion::Tls13]),
        ("options = no_tlsv1.3", |it| versions(it) == [TlsVersion::Tls12]),
        ("options = NO_TLSv1.2\noptions = NO_TLSv1_3\noptions = -NO_TLSv1_2", |it| {
            versions(it) == [TlsVersion::Tls12]
        }),
        ("sslVersionMin = tlsv1.3", |it| versions(it) == [TlsVersion::Tls13]),
        ("sslVersionMax = TLSV1.2", |it| versions(it) == [TlsVersion::Tls12]),
        ("sslVersion = all", |it| versions(it).is_empty()),
        ("sslVersionMin = All\nsslVersionMax = TLSv1.2", |it| versions(it) == [TlsVersion::Tls12]),
        ("TIMEOUTidle = 60", |it| it.backends[0].idle_timeout.as_secs() == 60),
        ("connect = a:1\nconnect = b:2\nfailover = prio", |it| {
            it.backends[0].balance == Balance::First && it.backends[0].servers.len() == 3
        }),
        ("connect = a:1", |it| it.backends[0].balance == Balance::First),
        ("connect = a:1\nfailover = rr", |it| it.backends[0].balance == Balance::RoundRobin),
    ];
    for (words, test) in table {
        let text = format!("[imaps]\naccept = 993\nconnect = 143\ncert = /c.pem\n{words}\n");
        assert!(test(&config(&text)), "{words}");
    }
}

#[test]
fn options_of_all_and_of_a_service_add_up() {
    let text = "options = NO_TLSv1_3\n[a]\naccept = 1\nconnect = 2\ncert = /c\noptions = SINGLE_ECDH_USE\n";
    assert_eq!(versions(&config(text)), [TlsVersion::Tls12]);
}

#[test]
fn options_that_refuse_no_version_are_told() {
    let told = |option: &str| {
        let text = format!("[a]\naccept = 1\nconnect = 2\ncert = /c\noptions = {option}\n");
        from(&text).unwrap().toml.contains(&format!("`options = {option}` is not carried over"))
    };
    assert_eq!(["NO_TLSv1.4", "NO_TLSv12", "NO_TICKET"].map(told), [true; 3]);
    assert_eq!(["NO_TLSv1.1", "-NO_TLSv1_2", "NO_SSLv2", "NO_SSLv3"].map(told), [false; 4]);
}

fn mode(config: &Config) -> Option<ClientAuthMode> {
    let certificate = &config.listeners[0].tls().unwrap().certificates[0];
    certificate.client_auth.as_ref().map(|asked| asked.mode)
}

fn versions(config: &Config) -> &[TlsVersion] {
    &config.listeners[0].tls().unwrap().versions
}

#[test]
fn each_option_of_a_client_does_what_stunnel_does_and_more_is_verified() {
    let text = "setuid = stunnel4\nsetgid = stunnel4\ndebug = 5\n[smtps]\nclient = yes\naccept = 127.0.0.1:25\n\
                connect = mail.example:465\nprotocol = smtp\nCAfile = /ca.pem\nverifyChain = yes\n\
                checkHost = mail.example\ncert = /own.pem\n";
    let made = from(text).unwrap();
    assert!(made.warnings.is_empty(), "{}", made.toml);
    let config = made.config().unwrap();
    assert_eq!(config.server.user.as_deref(), Some("stunnel4"));
    assert_eq!(config.log.level, "info");
    let tls = config.backends[0].tls.as_ref().unwrap();
    assert_eq!((tls.starttls, tls.certificate.is_some()), (StartTls::Smtp, true));
    assert!(matches!(&tls.roots, Roots::File(file) if file.value == Path::new("/ca.pem")));
    let system = "[a]\nclient = yes\naccept = 1\nconnect = h:2\nverifyChain = yes\ncheckHost = h\n\
                  CApath = /etc/ssl/certs/\n";
    let made = from(system).unwrap();
    assert!(made.warnings.is_empty(), "{}", made.toml);
    assert!(matches!(
        made.config().unwrap().backends[0].tls.as_ref().unwrap().roots,
        Roots::System
    ));
    let by_address = "[a]\nclient = yes\naccept = 1\nconnect = h:2\nverifyChain = yes\ncheckIP = ::1\nCAfile = /ca\n";
    let tls = self::config(by_address).backends.remove(0).tls.unwrap();
    assert_eq!(tls.name.as_deref(), Some("::1"));
    let loose = from("[a]\nclient = yes\naccept = 1\nconnect = h:2\n").unwrap();
    assert!(loose.toml.contains("are verified here"), "{}", loose.toml);
}

#[test]
fn what_a_client_offers_is_its_own_backend_s() {
    let text = "[a]\nclient = yes\naccept = 1\nconnect = h:2\nverifyChain = yes\ncheckHost = h\nCAfile = /ca.pem\n";
    for (options, versions, suites) in [
        ("", "tls1.2 tls1.3", "aes-128-gcm aes-256-gcm chacha20-poly1305"),
        ("sslVersionMax = TLSv1.2", "tls1.2", "aes-128-gcm aes-256-gcm chacha20-poly1305"),
        ("options = NO_TLSv1_2", "tls1.3", "aes-128-gcm aes-256-gcm chacha20-poly1305"),
        (
            "ciphers = ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-AES128-GCM-SHA256",
            "tls1.2 tls1.3",
            "chacha20-poly1305 aes-128-gcm",
        ),
    ] {
        let config = config(&format!("{text}{options}\n"));
        let tls = config.backends[0].tls.as_ref().unwrap();
        let words: Vec<&str> = tls.versions.iter().map(|it| it.as_str()).collect();
        assert_eq!(words.join(" "), versions, "{options}");
        let words: Vec<&str> = tls.suites.iter().map(|it| it.as_str()).collect();
        assert_eq!(words.join(" "), suites, "{options}");
    }
}

#[test]
fn a_service_that_would_become_looser_is_left_out() {
    for option in [
        "checkHost = a",
        "checkEmail = a@b",
        "checkIP = 1.2.3.4",
        "sni = other:name",
        "exec = /bin/sh",
        "PSKsecrets = /p",
        "protocol = cifs",
        "libwrap = yes",
        "requireCert = yes",
        "CRLpath = /crls",
        "OCSP = http://ocsp.example",
        "OCSPaia = yes",
        "ident = mallory",
        "socket = a:SO_BINDTODEVICE=lo",
        "verifyChain = yes\nverifyPeer = yes",
        "CAfile = /r\nverifyPeer = yes\nCRLfile = /c",
        "verify = 3",
        "verifyChain = yes\nCApath = /cas",
        "client = yes\nverifyChain = yes\nCApath = /cas",
        "client = yes\nverifyPeer = yes\nCApath = /etc/ssl/certs",
        "CAengine = pkcs11:x",
        "transparent = source",
    ] {
        let text = format!(
            "[a]\naccept = 1\nconnect = 2\ncert = /c\n{option}\n[b]\naccept = 3\nconnect = 4\ncert = /c\n"
        );
        let made = from(&text).unwrap_or_else(|diagnostics| panic!("{}", shown(&diagnostics)));
        assert_eq!(made.config().unwrap().listeners.len(), 1, "{option}\n{}", made.toml);
        let line = 4 + option.lines().count();
        let remark = format!("# /etc/stunnel.conf:{line}: the service a is left out");
        assert!(made.toml.contains(&remark), "{}", made.toml);
    }
}

#[test]
fn what_says_nothing_leaves_no_service_out() {
    let text = "iconError = e\niconIdle = i\ntaskbar = no\nstack = 65536\n[a]\naccept = 1\nconnect = 2\n\
                cert = /c\ntransparent = none\nsocket = a:SO_REUSEADDR=no\n";
    assert_eq!(config(text).listeners.len(), 1);
}

#[test]
fn mistakes_are_told_with_their_place() {
    for (text, expected) in [
        ("", "there is no service in this file"),
        ("[a\n", "1:1: a service has its name in brackets"),
        ("  acept = 1\n", "1:3: `acept` is not an option of stunnel"),
        ("client\n", "1:1: behind the name of an option a `=` is missing"),
        ("client = perhaps\n", "1:1: `client` takes yes or no"),
        ("[a]\nconnect = 1\n", "1:1: the service a accepts nothing"),
        ("[a]\naccept = 1\n", "1:1: the service a connects to nobody"),
        ("[a]\naccept = x\nconnect = 1\n", "2:1: cannot listen on x"),
        ("[a]\naccept = 1\nconnect = 1\n", "1:1: the service a has no certificate"),
        (
            "[a]\naccept = 1\nconnect = 1\ncert = c\nverifyChain = yes\n",
            "1:1: clients are verified, and",
        ),
        (
            "[a]\naccept = 1\nconnect = 1\ncert = c\nciphers = RC4\n",
            "5:1: kettle has none of the ciphers",
        ),
        (
            "[a]\naccept = 1\nconnect = 1\ncert = c\nTIMEOUTidle = x\n",
            "5:1: `TIMEOUTidle` takes a number",
        ),
        (
            "[a]\naccept = 1\nconnect = 1\ncert = c\nsslVersionMin = TLS1.3\n",
            "5:1: `TLS1.3` is no version of TLS",
        ),
        (
            "[a]\naccept = 1\nconnect = 1\ncert = c\nsslVersion = TLSv1.2\noptions = NO_TLSv1.2\n",
            "5:1: kettle has TLS 1.2 and TLS 1.3 only, and neither is asked for",
        ),
    ] {
        let diagnostics = shown(&from(text).map(|made| made.toml).unwrap_err());
        assert!(
            diagnostics.contains(expected) && diagnostics.contains("help: "),
            "{expected}\n{diagnostics}"
        );
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_fail_without_a_word(
        options in prop::collection::vec((prop::sample::select(vocabulary::Term::names()), "yes|1|[ -~]{0,9}"), 0..6)
    ) {
        let lines = options.iter().map(|(name, value)| format!("{name} = {value}\n"));
        let text = format!("[a]\naccept = 1\nconnect = 2\ncert = /c\n{}", lines.collect::<String>());
        match from(&text) {
            Ok(made) => _ = made.config(),
            Err(diagnostics) => prop_assert!(!diagnostics.is_empty()),
        }
    }
}

const MAIN: &str = "[main]\naccept = 1\nconnect = 2\ncert = /c\n";
const ADMIN: &str = "[admin]\nsni = main:A.example\nsni = main:*.b.example\nconnect = 5\ncert = /d\n\
                     verifyChain = yes\nCAfile = /ca\n";

#[test]
fn services_that_take_names_over_are_sites() {
    let config = config(&format!("{MAIN}{ADMIN}"));
    let listener = &config.listeners[0];
    let sites: Vec<&str> =
        listener.tls().unwrap().sites.iter().map(|it| it.value.as_str()).collect();
    assert_eq!(sites, ["_", "a.example", "**.b.example"]);
    assert!(listener.tls().unwrap().backend.is_none());
    let reached = config.sites.iter().map(|site| {
        let names: Vec<&str> = site.names.iter().map(|it| it.value.as_str()).collect();
        let backend = site.backend.as_ref().unwrap().value.as_str();
        let chain = site.certificates[0].chain.value.display();
        format!("{names:?} {backend} {chain} {}", site.client_auth.is_some())
    });
    assert_eq!(
        reached.collect::<Vec<_>>(),
        ["[\"_\"] main /c false", "[\"a.example\", \"**.b.example\"] admin /d true"]
    );
}

/// Clients of a name that is another service's do not come in by the first one, which asks them for less.
#[test]
fn a_service_whose_names_cannot_be_sites_is_left_out_with_them() {
    let other = "[other]\naccept = 3\nconnect = 4\ncert = /c\n";
    for (more, expected) in [
        ("[x]\nsni = third:a.example\nconnect = 5\ncert = /c\n", 2),
        ("[x]\nsni = main:a.example\nconnect = 5\ncert = /c\nident = me\n", 1),
        ("[x]\nsni = main:a.example\nconnect = 5\ncert = /c\nciphers = HIGH\n", 1),
        ("[x]\nsni = main:a*\nconnect = 5\ncert = /c\n", 1),
        (
            "[x]\nsni = main:*.b\nconnect = 5\ncert = /c\n[y]\nsni = main:A.B\nconnect = 5\ncert = /c\n",
            1,
        ),
        (
            "[x]\nsni = main:a\nconnect = 5\ncert = /c\n[y]\nsni = other:b\nconnect = 5\ncert = /c\n",
            0,
        ),
    ] {
        let made = from(&format!("{MAIN}{other}{more}")).unwrap();
        assert_eq!(made.toml.matches("[[listener]]").count(), expected, "{}", made.toml);
        assert!(made.toml.contains("is left out because of `sni`"), "{}", made.toml);
    }
    let primary = MAIN.replace("cert", "ident = me\ncert");
    let made = from(&format!("{primary}{ADMIN}{other}")).unwrap();
    assert_eq!(made.toml.matches("[[listener]]").count(), 1, "{}", made.toml);
    assert!(made.toml.contains("the service admin is left out because of `ident`"));
}

#[test]
fn services_with_names_alike_have_backends_of_their_own() {
    let service =
        |name, port| format!("[{name}]\naccept = {port}\nconnect = {port}0\ncert = /c.pem\n");
    let config = config(&(service("a/b", 1) + &service("a b", 2)));
    let names: Vec<&str> = config.backends.iter().map(|it| it.name.value.as_str()).collect();
    assert_eq!(names, ["a-b", "a-b-2"]);
}

/// Those that are known one by one.
#[test]
fn certificates_of_clients_are_pinned_where_stunnel_looks_for_themselves() {
    for (option, pinned) in [
        ("verifyPeer = yes", Some(true)),
        ("verify = 4", Some(true)),
        ("verifyPeer = yes\nrequireCert = yes", Some(true)),
        ("verify = 2", Some(false)),
        ("verifyPeer = no", None),
    ] {
        let text = format!("[a]\naccept = 1\nconnect = 2\ncert = /c\nCAfile = /r\n{option}\n");
        let made = from(&text).unwrap_or_else(|diagnostics| panic!("{}", shown(&diagnostics)));
        let config = made.config().unwrap();
        let auth = config.client_auths().next();
        assert_eq!(auth.map(|it| it.pinned), pinned, "{option}\n{}", made.toml);
        assert!(auth.is_none_or(|it| it.mode == ClientAuthMode::Required), "{option}");
    }
}
