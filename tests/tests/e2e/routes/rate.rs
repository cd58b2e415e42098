//! Clients that ask too much, on one connection and on several workers.

use super::*;

#[test]
fn requests_in_a_row_are_counted_and_the_connection_stays() {
    let setup = Setup::default().set("server", "workers = 2").file("www/a", "content");
    let limit = "rate_limit = { requests = 1, period = \"1h\", burst = 3 }";
    let kettle = Kettle::start(setup.route(limit));
    let mut client = kettle.connect(TLS13_AES_128);
    client.send(&get("/a").repeat(4)).unwrap();
    let statuses: Vec<u16> = (0..4).map(|_| client.response().status).collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    for _ in 0..8 {
        let mut other = kettle.connect(TLS13_AES_128);
        let response = other.get("/a");
        assert_eq!((response.status, response.header("connection")), (429, None));
        let seconds: u32 = response.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=3600).contains(&seconds));
    }
}

#[test]
fn what_is_refused_for_its_path_is_counted_and_has_the_sites_page() {
    let setup = Setup::default().file("www/a", "content").file("404.html", "what is that");
    let limit = "rate_limit = { requests = 1, period = \"1h\", burst = 2 }";
    let setup = setup.route(limit).site("error_pages = { 404 = \"404.html\" }");
    let kettle = Kettle::start(setup);
    let mut client = kettle.connect(TLS13_AES_128);
    client.send(&[get("/a%2fb").repeat(2), get("/a")].concat()).unwrap();
    for (status, body) in [(404, Some("what is that")), (404, Some("what is that")), (429, None)] {
        let response = client.response();
        assert_eq!(response.status, status);
        assert!(body.is_none_or(|body| response.body == body.as_bytes()));
    }
}
