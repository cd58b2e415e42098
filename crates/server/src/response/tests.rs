use super::*;

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_routes_headers_replace_the_sites_of_the_same_name() {
    let lines = ConfiguredFields::new(
        &pairs(&[("X-Site", "1"), ("x-both", "site")]),
        &pairs(&[("X-Both", "route"), ("x-route", "2")]),
    );
    assert_eq!(text(lines.all()), "server: kettle\r\nx-site: 1\r\nx-both: route\r\nx-route: 2\r\n");
}

#[test]
fn the_operator_can_name_the_server() {
    let lines = ConfiguredFields::new(&pairs(&[("Server", "other")]), &[]);
    assert_eq!(text(lines.all()), "server: other\r\n");
}

#[test]
fn errors_do_not_get_the_headers_about_caching() {
    let lines = ConfiguredFields::new(
        &pairs(&[("Cache-Control", "max-age=60"), ("Expires", "0"), ("x-frame-options", "DENY")]),
        &[],
    );
    assert_eq!(text(lines.without_caching()), "server: kettle\r\nx-frame-options: DENY\r\n");
    assert!(text(lines.all()).contains("cache-control: max-age=60\r\n"));
}
