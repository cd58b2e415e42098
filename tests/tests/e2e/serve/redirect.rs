//! The plain listener that only says where to find the same thing over HTTPS.

use kettle_tests::client::Wire;
use kettle_tests::http::{Connection, get, request};
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;

#[test]
fn plain_http_is_sent_to_https() {
    let kettle =
        Kettle::start(Setup::default().listener("kind = \"redirect\"\nredirect_port = 8443"));
    for (request, location) in [
        (get("/a%20b?c=d"), "https://localhost:8443/a%20b?c=d"),
        (get("//evil.test/"), "https://localhost:8443/evil.test/"),
        (
            b"GET http://other.test/x HTTP/1.1\r\nHost: other.test\r\n\r\n".to_vec(),
            "https://other.test:8443/x",
        ),
        (request("POST", "/form", "Content-Length: 0\r\n"), "https://localhost:8443/form"),
    ] {
        let mut client = Wire::connect(kettle.address());
        client.send(&request).unwrap();
        let response = client.response();
        assert_eq!((response.status, response.header("location")), (308, Some(location)));
        assert_eq!(response.header("connection"), Some("close"));
        client.read_to_end();
    }
}

#[test]
fn the_default_port_and_another_status_are_understood() {
    let kettle =
        Kettle::start(Setup::default().listener("kind = \"redirect\"\nredirect_status = 301"));
    let mut client = Wire::connect(kettle.address());
    client.send(b"GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n").unwrap();
    let response = client.response();
    assert_eq!((response.status, response.header("location")), (301, Some("https://localhost/")));
}

#[test]
fn plain_nonsense_is_refused() {
    let kettle = Kettle::start(Setup::default().listener("kind = \"redirect\""));
    for sent in ["GET / HTTP/1.1\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"] {
        let mut client = Wire::connect(kettle.address());
        client.send(sent.as_bytes()).unwrap();
        assert_eq!(client.response().status, 400, "{sent:?}");
        client.read_to_end();
    }
}
