use std::path::Path;

use super::AlpnRoutes;
use crate::Config;

fn parsed(text: &str) -> Config {
    let servers = ["a", "b", "c"].map(|name| {
        format!("\n[[backend]]\nname = \"{name}\"\nserver = [{{ address = \"127.0.0.1:80\" }}]\n")
    });
    crate::parse(&(text.to_owned() + &servers.concat()), Path::new("kettle.toml")).unwrap()
}

#[test]
fn a_site_goes_before_its_listener() {
    let config = parsed(
        r#"
[[listener]]
address = "0.0.0.0:443"
kind = "passthrough"
backend = "a"
backend_by_alpn = { h2 = "b", imap = "b" }
[[site]]
names = ["table.example"]
backend_by_alpn = { imap = "c" }
[[site]]
names = ["both.example"]
backend = "b"
backend_by_alpn = { h2 = "c" }
"#,
    );
    let [listener] = &config.listeners[..] else { panic!() };
    let routes = |site: usize| listener.alpn_routes(config.sites.get(site));
    let others = Some("a");
    assert_eq!(routes(0), AlpnRoutes { by_alpn: vec![("imap", "c"), ("h2", "b")], others });
    assert_eq!(routes(1), AlpnRoutes { by_alpn: vec![("h2", "c")], others: Some("b") });
    assert_eq!(routes(2), AlpnRoutes { by_alpn: vec![("h2", "b"), ("imap", "b")], others });
}

#[test]
fn only_what_has_a_backend_is_agreed_on() {
    let spoken = || ["h2", "http/1.1"].into_iter();
    let table = || vec![("imap", "a"), ("http/1.1", "b")];
    let routes = AlpnRoutes { by_alpn: table(), others: Some("c") };
    assert_eq!(routes.protocols(spoken()), ["h2", "http/1.1", "imap"]);
    assert!(!routes.needs_alpn());
    let routes = AlpnRoutes { by_alpn: table(), others: None };
    assert_eq!(routes.protocols(spoken()), ["http/1.1", "imap"]);
    assert!(routes.needs_alpn());
    assert!(!AlpnRoutes::default().needs_alpn());
}
