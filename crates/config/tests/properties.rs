//! No text makes the parser panic, and what is built from valid parts is valid.

use std::path::Path;

use kettle_config::{Config, Diagnostic, parse};
use proptest::prelude::*;

fn parsed(text: &str) -> Result<Config, Vec<Diagnostic>> {
    parse(text, Path::new("kettle.toml"))
}

/// Pieces of configurations, whole and broken, to be put together in any order.
fn fragment() -> impl Strategy<Value = String> {
    let pieces = [
        "[server]\n",
        "[tls]\n",
        "[limits]\n",
        "[[listener]]\n",
        "[[site]]\n",
        "[site]\n",
        "[[site.route]]\n",
        "[[site.certificate]]\n",
        "[site.hsts]\n",
        "[site.headers]\n",
        "address = \"0.0.0.0:443\"\n",
        "address = :443\n",
        "names = [\"a.example\", \"_\"]\n",
        "names = [\"a\"\n",
        "root = \"/srv\"\n",
        "root = 7\n",
        "workers = 0\n",
        "tickets = 3\n",
        "groups = [\"x25519mlkem768\"]\n",
        "versions = [\"tls1.2\"]\n",
        "self_signed = true\n",
        "default = true\n",
        "preload = true\n",
        "head = \"1 KiB\"\n",
        "[",
        "]",
        "\"",
        "'",
        "{",
        "=",
        "\"\"\"",
        "#",
        "\r\n",
        "\t",
        "é",
        "\u{0}",
        "🫖 = 1\n",
        "a.b.c = {\n",
        "X-A = \"\\r\\n\"\n",
        "cache_control = { \"*.{a,b}\" = \"x\" }\n",
        "prefix = \"/../%2e\"\n",
    ];
    prop_oneof![
        4 => proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        1 => "[ -~\\n]{0,12}",
    ]
}

/// A valid configuration and how many listeners and sites it has.
fn valid() -> impl Strategy<Value = (String, usize, usize)> {
    let size = prop_oneof![
        (1024u64..=65_536).prop_map(|bytes| bytes.to_string()),
        (1u64..=64).prop_map(|kib| format!("\"{kib} KiB\"")),
    ];
    let duration = prop_oneof![
        (1u64..=3600).prop_map(|seconds| format!("\"{seconds}s\"")),
        (1u64..=59, 1u64..=59).prop_map(|(m, s)| format!("\"{m}m {s}s\"")),
    ];
    let server =
        (1u16..=1024, any::<bool>(), duration.clone()).prop_map(|(workers, pin, drain)| {
            format!("[server]\nworkers = {workers}\npin_workers = {pin}\ndrain_timeout = {drain}\n")
        });
    let limits = (size, duration, 8u8..=128).prop_map(|(head, idle, headers)| {
        format!(
            "[limits]\nhead = {head}\ntarget = 512\nidle_timeout = {idle}\nheaders = {headers}\n"
        )
    });
    let path = proptest::sample::select(vec!["auto", "user", "kernel-write", "kernel-sendfile"]);
    let ports = proptest::collection::btree_set(1u16.., 1..5);
    let listeners = (ports, path, any::<bool>()).prop_map(|(ports, path, redirects)| {
        let count = ports.len();
        let listener = |port: u16| match redirects {
            true => format!("[[listener]]\naddress = \"[::]:{port}\"\nkind = \"redirect\"\n"),
            false => format!("[[listener]]\naddress = \"[::]:{port}\"\npath = \"{path}\"\n"),
        };
        (ports.into_iter().map(listener).collect::<String>(), count)
    });
    let name = "[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?(\\.[a-z]{2,5}){1,3}";
    let value = "([!-~]([ -~]{0,20}[!-~])?)?";
    let sites = proptest::collection::btree_map(name, value, 0..6).prop_map(|sites| {
        let count = sites.len();
        let site = |(name, value): (String, String)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            let value = value.replace('{', "{{");
            format!(
                "[[site]]\nnames = [\"{name}\"]\nself_signed = true\nheaders = {{ X-A = \"{value}\" }}\n\
                 [[site.route]]\nroot = \"/srv/{name}\"\n"
            )
        };
        (sites.into_iter().map(site).collect::<String>(), count)
    });
    (server, limits, listeners, sites)
        .prop_filter("an https listener needs a site", |(.., listeners, sites)| {
            sites.1 > 0 || listeners.0.contains("redirect")
        })
        .prop_map(|(server, limits, listeners, sites)| {
            (server + &limits + &listeners.0 + &sites.0, listeners.1, sites.1)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = parsed(&text);
    }

    #[test]
    fn no_mix_of_fragments_makes_the_parser_panic(
        fragments in proptest::collection::vec(fragment(), 0..40)
    ) {
        let text = fragments.concat();
        let Err(diagnostics) = parsed(&text) else { return Ok(()) };
        prop_assert!(!diagnostics.is_empty());
        let lines = text.split('\n').count();
        let mut before = (0, 0);
        for diagnostic in diagnostics {
            prop_assert!((1..=lines).contains(&diagnostic.line), "{diagnostic:?}");
            prop_assert!(diagnostic.column >= 1, "{diagnostic:?}");
            prop_assert!(before <= (diagnostic.line, diagnostic.column), "out of order: {diagnostic:?}");
            prop_assert!(diagnostic.help.is_some(), "no advice: {diagnostic:?}");
            let is_raw = |character: char| character.is_control() && !"\n\t".contains(character);
            prop_assert!(!diagnostic.to_string().contains(is_raw), "{diagnostic:?}");
            before = (diagnostic.line, diagnostic.column);
        }
    }

    #[test]
    fn a_configuration_of_valid_parts_is_valid((text, listeners, sites) in valid()) {
        match parsed(&text) {
            Ok(config) => {
                prop_assert_eq!(config.listeners.len(), listeners);
                prop_assert_eq!(config.sites.len(), sites);
            }
            Err(diagnostics) => {
                let shown: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
                prop_assert!(false, "{}\n{}", text, shown.join("\n"));
            }
        }
    }

    #[test]
    fn a_valid_configuration_with_one_bad_line_has_that_finding(
        (text, ..) in valid(),
        line in 0usize..100,
    ) {
        let lines: Vec<&str> = text.lines().collect();
        let at = line % (lines.len() + 1);
        let mut broken: Vec<&str> = lines.clone();
        broken.insert(at, "unheard_of_setting = 1");
        let diagnostics = parsed(&broken.join("\n")).unwrap_err();
        prop_assert!(
            diagnostics.iter().any(|diagnostic| diagnostic.line == at + 1 && diagnostic.column == 1),
            "line {}: {:?}", at + 1, diagnostics
        );
    }
}

#[test]
fn a_mistake_keeps_no_more_of_a_long_line_than_it_shows() {
    let wrong = "\"x y\", ".repeat(1000);
    let redirects = "{ from = 1 }, ".repeat(1000);
    let text = format!("[[site]]\nnames = [{wrong}]\nroute = [{{ redirect = [{redirects}] }}]\n");
    let mistakes = parsed(&text).unwrap_err();
    assert!(mistakes.len() >= 2000, "{}", mistakes.len());
    let longest = mistakes.iter().map(|mistake| format!("{mistake:?}").len()).max();
    assert!(longest < Some(1500), "{longest:?}");
}
