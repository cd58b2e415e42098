use std::collections::BTreeMap;

use super::{RUN_EXTENSIONS, is_run, media_type};

/// The extensions that nginx has another type for: ours, and why.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("bmp", "image/bmp", "IANA's"),
    ("deb", "application/vnd.debian.binary-package", "IANA's"),
    ("dll", "application/x-msdownload", "a download with either"),
    ("js", "text/javascript", "RFC 9239 took application/javascript back"),
    ("m4a", "audio/mp4", "IANA's; players take both"),
    ("pdb", "application/vnd.palm", "IANA's"),
    ("prc", "application/x-mobipocket-ebook", "books today, not programs of Palm"),
];

/// nginx's table.
fn of_nginx() -> BTreeMap<&'static str, &'static str> {
    let text = include_str!("nginx.mime.types");
    let (_, table) = text.split_once('{').unwrap();
    let (table, _) = table.rsplit_once('}').unwrap();
    let mut types = BTreeMap::new();
    for line in table.split(';') {
        let mut words = line.split_whitespace();
        let Some(kind) = words.next() else { continue };
        types.extend(words.map(|extension| (extension, kind)));
    }
    types
}

#[test]
fn each_difference_from_nginx_is_named() {
    let nginx = of_nginx();
    assert_eq!(nginx.len(), 110);
    let mut differences = Vec::new();
    for (extension, theirs) in &nginx {
        let ours = media_type(extension).unwrap();
        if ours != *theirs {
            differences.push((*extension, ours));
        }
    }
    let named: Vec<_> =
        DIFFERENCES.iter().map(|(extension, ours, _)| (*extension, *ours)).collect();
    assert_eq!(differences, named);
}

#[test]
fn what_nginx_does_not_know_has_the_type_that_programs_insist_on() {
    for (extension, kind) in [
        ("cjs", "text/javascript"),
        ("M4S", "video/iso.segment"),
        ("map", "application/json"),
        ("mjs", "text/javascript"),
        ("mobileconfig", "application/x-apple-aspen-config"),
        ("mpd", "application/dash+xml"),
        ("otf", "font/otf"),
        ("toml", "application/toml"),
        ("TS", "video/mp2t"),
        ("usdz", "model/vnd.usdz+zip"),
        ("yaml", "application/yaml"),
        ("zst", "application/zstd"),
        ("Png", "image/png"),
    ] {
        assert_eq!(media_type(extension), Some(kind), "{extension}");
    }
    for unknown in ["", "unheard-of", "."] {
        assert_eq!(media_type(unknown), None, "{unknown}");
    }
}

/// An upload may have any extension that somebody's table knows.
#[test]
fn few_extensions_have_a_type_that_browsers_run() {
    let letters = || 'a'..='z';
    let mut short = vec![String::new()];
    for _ in 0..3 {
        let longer = short.iter().flat_map(|it| letters().map(move |next| format!("{it}{next}")));
        short.extend(longer.collect::<Vec<_>>());
    }
    for extension in short.iter().filter(|it| media_type(it).is_some_and(is_run)) {
        assert!(RUN_EXTENSIONS.contains(&extension.as_str()), "{extension}");
    }
    for extension in RUN_EXTENSIONS {
        assert!(media_type(extension).is_some_and(is_run), "{extension}");
    }
    for extension in ["hxt", "xaml", "config", "jsm", "asmx", "vcproj", "jsx"] {
        assert_eq!(media_type(extension), None, "{extension}");
    }
    for kind in ["text/html", "image/svg+xml", "text/xml", "text/javascript", "application/wasm"] {
        assert!(is_run(kind), "{kind}");
    }
    for kind in ["text/plain", "application/pdf", "application/vnd.sun.xml.calc"] {
        assert!(!is_run(kind), "{kind}");
    }
}
