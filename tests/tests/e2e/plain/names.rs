//! Which site a plain request reaches, and which it never does.

use kettle_tests::setup::unused_ip;
use rustix::process::Signal;

use super::*;

fn ask(address: std::net::SocketAddr, target: &str, host: &str) -> Response {
    let mut client = Wire::connect(address);
    client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    client.response()
}

const OTHERS: &str = "[[site]]\nnames = [\"*.example.org\"]\n[[site.route]]\nroot = \"wild\"\n\
    [[site]]\nnames = [\"admin.example.org\"]\n[[site.certificate]]\nchain = \"localhost.pem\"\nkey = \"localhost.key\"\n\
    [site.client_auth]\nroots = \"authority.pem\"\n[[site.route]]\nroot = \"secret\"\n\
    [[site]]\nnames = [\"tls.example.net\"]\n[[site.certificate]]\nchain = \"localhost.pem\"\nkey = \"localhost.key\"\n\
    [[site.route]]\nroot = \"secret\"\n\
    [[site]]\nnames = [\"tls.example.net\"]\n[[site.route]]\nroot = \"twin\"\n\
    [[site]]\nnames = [\"any\"]\ndefault = true\n[[site.route]]\nroot = \"any\"\n";

fn with_others() -> Setup {
    let own = "kind = \"http\"\nsites = [\"localhost\", \"*.example.org\"]\nredirect_port = 8443\nredirect_status = 302";
    Setup::default()
        .listener("path = \"auto\"")
        .listener(own)
        .listener("kind = \"http\"\nsites = [\"_\"]")
        .listener("kind = \"http\"\nsites = [\"tls.example.net\"]")
        .file("wild/index.html", "wild")
        .file("secret/index.html", "secret")
        .file("twin/index.html", "twin")
        .file("any/index.html", "any")
        .file("www/index.html", "own")
        .more(OTHERS)
}

#[test]
fn a_name_is_served_sent_to_https_or_refused() {
    let kettle = Kettle::start(with_others());
    let [_, own, any, twin] = kettle.addresses[..] else { panic!("four listeners") };
    for (address, host, expected) in [
        (own, "localhost", Ok("own")),
        (own, "LOCALHOST.:80", Ok("own")),
        (own, "a.example.org", Ok("wild")),
        // A star does not stand for what another site is named, nor does a default.
        (own, "admin.example.org", Err(302)),
        (own, "Admin.Example.Org", Err(302)),
        (any, "admin.example.org", Err(308)),
        (own, "tls.example.net", Err(302)),
        (own, "any", Err(421)),
        (own, "127.0.0.1", Err(421)),
        (any, "127.0.0.1", Ok("any")),
        (any, "nobody.example", Ok("any")),
        (any, "localhost", Err(308)),
        (any, "a.example.org", Err(421)),
        (twin, "tls.example.net", Ok("twin")),
        (twin, "admin.example.org", Err(308)),
    ] {
        let response = ask(address, "/", host);
        let got = match response.status {
            200 => Ok(std::str::from_utf8(&response.body).unwrap()),
            status => Err(status),
        };
        assert_eq!(got, expected, "{host} at {address}");
        // The absolute form says the same, whatever its scheme.
        for scheme in ["http", "https"] {
            let absolute = ask(address, &format!("{scheme}://{host}/"), "localhost");
            assert_eq!(absolute.status, response.status, "{scheme} {host}");
        }
    }
    let sent = ask(own, "/a%20b?c", "admin.example.org");
    assert_eq!(sent.header("location"), Some("https://admin.example.org:8443/a%20b?c"));
    assert_eq!(kettle.entry("/a%20b?c").text("path"), "plain");
    // HTTP/1.0 need not say a name: only a default answers that.
    for (address, status) in [(own, 421), (any, 200)] {
        let mut client = Wire::connect(address);
        client.send(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        assert_eq!(client.response().status, status);
    }
}

/// As in nginx, a connection is for the listener that names its address, and for that of all addresses where none does.
#[test]
fn a_listener_of_one_address_stands_beside_that_of_all() {
    let all = std::net::TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap();
    let one = std::net::SocketAddr::new(unused_ip(), all.port());
    let site = "[[site]]\nnames = [\"one\"]\n[[site.route]]\nroot = \"one\"\n";
    let setup = Setup::default().more(site).file("one/index.html", "one");
    let setup = setup.file("www/index.html", "all").set("server", "workers = 3");
    let setup = setup.listener_at(all, "kind = \"http\"\nsites = [\"localhost\"]");
    let kettle = Kettle::start(setup.listener_at(one, "kind = \"http\"\nsites = [\"one\"]"));
    let loopback = std::net::SocketAddr::from(([127, 0, 0, 1], all.port()));
    for _ in 0..20 {
        assert_eq!(ask(one, "/", "one").body, b"one");
        assert_eq!(ask(one, "/", "localhost").status, 421);
        assert_eq!(ask(loopback, "/", "localhost").body, b"all");
        assert_eq!(ask(loopback, "/", "one").status, 421);
    }
    // Without the one, the other is for it, too.
    let named = format!("[[listener]]\naddress = \"{one}\"\nkind = \"http\"\nsites = [\"one\"]\n");
    kettle.folder.change_config(&named, "");
    let _ = kettle.ctl(&["reload"]).succeed();
    wait_until("the listener of all addresses answers", || {
        ask(one, "/", "localhost").status == 200
    });
}

/// A proxy in front ends TLS: to be sent to HTTPS would lead back here.
#[test]
fn a_client_that_came_by_https_is_not_sent_there_again() {
    let trusting = "kind = \"http\"\nsites = [\"localhost\"]\ntrusted_proxies = [\"127.0.0.1\"]";
    let site = "[[site]]\nnames = [\"b\"]\n[[site.certificate]]\nchain = \"localhost.pem\"\nkey = \"localhost.key\"\n\
        [[site.route]]\nroot = \"www\"\n";
    let setup = Setup::default().listener("path = \"auto\"").listener(trusting).more(site);
    let kettle = Kettle::start(setup);
    for (header, status) in
        [("", 308), ("X-Forwarded-Proto: https\r\n", 421), ("X-Forwarded-Proto: http\r\n", 308)]
    {
        let mut client = Wire::connect(kettle.addresses[1]);
        client.send(format!("GET / HTTP/1.1\r\nHost: b\r\n{header}\r\n").as_bytes()).unwrap();
        assert_eq!(client.response().status, status, "{header}");
    }
}

/// A connection's own listener decides what it reaches, and one of another kind never does.
#[test]
fn a_reload_gives_no_plain_connection_what_https_has() {
    let kettle = Kettle::start(plain("").file("www/index.html", "own"));
    let [tls, plain_address] = kettle.addresses[..] else { panic!("two listeners") };
    let before = std::fs::read_to_string(kettle.folder.config()).unwrap();
    let reload = |text: &str| {
        std::fs::write(kettle.folder.config(), text).unwrap();
        let _ = kettle.ctl(&["reload"]).succeed();
    };
    let mut client = Wire::connect(plain_address);
    assert_eq!(client.get("/").status, 200);
    // In another order it is the same listener.
    let at = before.rfind("[[listener]]").unwrap();
    let end = before.find("[[site]]").unwrap();
    let first = before.find("[[listener]]").unwrap();
    let turned = [&before[..first], &before[at..end], &before[first..at], &before[end..]].concat();
    reload(&turned);
    assert_eq!(client.get("/").status, 200);
    // Its address speaks HTTPS now.
    reload(&before.replace("kind = \"http\"\nsites = [\"localhost\"]", "kind = \"https\""));
    assert_eq!(client.get("/").status, 421);
    client.read_to_end();
    // And back: a connection with TLS is one of HTTPS to its end, which is near.
    let mut over_tls = kettle_tests::client::Dialer::default().connect(plain_address);
    assert_eq!(over_tls.get("/").status, 200);
    reload(&before);
    let last = over_tls.get("/");
    assert_eq!((last.status, last.header("connection")), (200, Some("close")));
    let mut client = Wire::connect(plain_address);
    assert_eq!(client.get("/").status, 200);
    // The listener is gone.
    reload(&before.replace(&before[at..end], ""));
    assert_eq!(client.get("/").status, 421);
    let _ = tls;
    wait_until("nobody listens", || std::net::TcpStream::connect(plain_address).is_err());
    let mut kettle = kettle;
    kettle.signal(Signal::TERM);
    assert!(kettle.ended().status.success());
}
