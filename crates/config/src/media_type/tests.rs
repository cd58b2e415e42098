use std::collections::BTreeMap;

use super::media_type;

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
