use super::*;

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_routes_headers_replace_the_sites_of_the_same_name() {
    let lines = ExtraLines::new(
        &pairs(&[("X-Site", "1"), ("x-both", "site")]),
        &pairs(&[("X-Both", "route"), ("x-route", "2")]),
    );
    assert_eq!(text(lines.all()), "server: kettle\r\nx-site: 1\r\nx-both: route\r\nx-route: 2\r\n");
}

#[test]
fn the_operator_can_name_the_server() {
    let lines = ExtraLines::new(&pairs(&[("Server", "other")]), &[]);
    assert_eq!(text(lines.all()), "server: other\r\n");
}

#[test]
fn errors_do_not_get_the_headers_about_caching() {
    let lines = ExtraLines::new(
        &pairs(&[("Cache-Control", "max-age=60"), ("Expires", "0"), ("x-frame-options", "DENY")]),
        &[],
    );
    assert_eq!(text(lines.without_caching()), "server: kettle\r\nx-frame-options: DENY\r\n");
    assert!(text(lines.all()).contains("cache-control: max-age=60\r\n"));
}

#[test]
fn a_response_that_closes_says_so_at_its_end() {
    let mut buffer = Vec::new();
    begin(&mut buffer, 204);
    let date_line = *b"date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let ending = Ending::new(date_line, None, true).with_hsts(Some(b"hsts: 1\r\n"));
    let response = ending.finish(204, Body::Empty, &mut buffer);
    assert_eq!(
        text(&response.head),
        "HTTP/1.1 204 No Content\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\nhsts: 1\r\n\
         connection: close\r\n\r\n"
    );
    assert!(response.closes);
}
