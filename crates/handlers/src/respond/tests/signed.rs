//! URLs that somebody with a secret has made.

use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use kettle_config::{Located, SignedUrls};
use kettle_runtime::clock::Clock;
use kettle_tls::mac::MacKey;

use super::stage::{Server, Stage};

const OLD: &str = "0123456789abcdef0123456789abcdef";
const NEW: &str = "fedcba9876543210fedcba9876543210";

fn server(client: bool) -> Server {
    let stage = Stage::new().file("a b", "content").file("a b.gz", "packed");
    let secret = stage.folder.path().join("secret");
    fs::write(&secret, format!("{NEW}\n{OLD}\n")).unwrap();
    let secret = Located::not_written(secret);
    stage
        .route(|route| {
            route.signed_urls = Some(SignedUrls { secret, client });
            route.fallback = Some("/a b".to_owned());
        })
        .open()
}

fn signed(secret: &str, path: &str, expires: u64, more: &str) -> String {
    let text = format!("{expires}\n{path}{more}");
    let mac = MacKey::new(secret.as_bytes()).hash(&[text.as_bytes()]);
    let mac: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}?expires={expires}&signature={mac}", path.replace(' ', "%20"))
}

fn in_an_hour(server: &Server) -> u64 {
    server.clock.wall().duration_since(UNIX_EPOCH).unwrap().as_secs() + 3600
}

#[tokio::test]
async fn a_signed_url_is_good_until_it_ends_for_its_path_alone() {
    let server = server(false);
    let expires = in_an_hour(&server);
    for secret in [OLD, NEW] {
        let url = signed(secret, "/a b", expires, "");
        assert_eq!(server.get(&url, &[]).await.text(), "content");
        assert_eq!(server.get(&format!("{url}&other=1"), &["Range: bytes=0-1"]).await.status, 206);
        assert_eq!(server.get(&url.replace("/a%20b", "//x/../%61%20b"), &[]).await.status, 200);
    }
    let url = signed(NEW, "/a b", expires, "");
    let (start, last) = url.split_at(url.len() - 1);
    let flipped = if last == "0" { "1" } else { "0" };
    for (target, why) in [
        ("/a%20b".to_owned(), "no-signature"),
        (format!("/a%20b?expires={expires}"), "no-signature"),
        (format!("{url}&expires={expires}"), "no-signature"),
        (format!("{start}{flipped}"), "signature"),
        (start.to_owned(), "signature"),
        (url.replace("/a%20b", "/none"), "signature"),
        (url.replace(&format!("={expires}"), &format!("={}", expires + 1)), "signature"),
        (signed("0", "/a b", expires, ""), "signature"),
        (signed(NEW, "/a b", 5, ""), "expired"),
    ] {
        let reply = server.get(&target, &[]).await;
        assert_eq!((reply.status, reply.notes.refusal), (403, Some(why)), "{target}");
    }
    server.clock.pass(Duration::from_secs(3601));
    let reply = server.get(&url, &["Range: bytes=1-"]).await;
    assert_eq!((reply.status, reply.notes.refusal), (403, Some("expired")));
}

#[tokio::test]
async fn an_address_that_is_signed_too_is_the_only_one() {
    let server = server(true);
    let expires = in_an_hour(&server);
    for (written, client, status) in [
        ("192.0.2.7", "192.0.2.7", 200),
        ("192.0.2.7", "::ffff:192.0.2.7", 200),
        ("192.0.2.7", "192.0.2.8", 403),
        ("2001:db8:1:2::", "2001:db8:1:2:3:4:5:6", 200),
        ("2001:db8:1:2::", "2001:db8:1:3::1", 403),
    ] {
        let target = signed(NEW, "/a b", expires, &format!("\n{written}"));
        let text = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let reply = server.send_from(client.parse().unwrap(), &text, None, false).await;
        assert_eq!(reply.status, status, "{written} {client}");
    }
    assert_eq!(server.get(&signed(NEW, "/a b", expires, ""), &[]).await.status, 403);
}
