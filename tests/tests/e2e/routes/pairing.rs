//! Two settings of one route that meet: which comes first, and what one lets through that the other would not.

use super::access::ANN;
use super::*;
use crate::proxy::guarded::{SECRET, SIGNATURE};

/// `ann:secret`.
const CREDENTIALS: &str = "Authorization: Basic YW5uOnNlY3JldA==\r\n";
const OTHERS: &str = "Authorization: Basic YW5uOndyb25n\r\n";

/// A route whose responses are kept. `# more` in it is a comment to begin with.
fn keeping(settings: &str) -> (Kettle, Backend) {
    let servers = Backend::listen();
    let route = format!(
        "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n\
         cache = {{ store = \"main\" }}\n{settings}\n# more\n"
    );
    let setup = Setup::default().listener("http2 = true").file("users", ANN);
    let setup = setup.file("store/seed", "").more(&route);
    let setup = setup.more("[[cache]]\nname = \"main\"\ndirectory = \"store\"\n");
    (Kettle::start(setup.more(&backend("app", "", &[servers.address()]))), servers)
}

/// From now on the route asks for a password.
fn ask_for_a_password(kettle: &Kettle) {
    kettle.reload_with("# more", "basic_auth = { users = \"users\" }");
}

fn ask(kettle: &Kettle, method: &str, target: &str, headers: &str) -> Response {
    let mut client = kettle.ask(&request(method, target, headers));
    if method == "HEAD" { client.response_head() } else { client.response() }
}

/// Asks, and lets the backend answer.
fn fill(kettle: &Kettle, servers: &Backend, headers: &str) -> Response {
    let mut client = kettle.connect(TLS13_AES_128);
    client.send(&request("GET", "/app/a", headers)).unwrap();
    answer(&mut servers.accept(), KEPT);
    client.response()
}

/// Waits until it is kept, which it is once its last byte was sent.
fn hit(kettle: &Kettle, headers: &str) -> Response {
    loop {
        let response = ask(kettle, "GET", "/app/a", headers);
        if response.head.contains("kettle; hit") {
            return response;
        }
    }
}

fn readable_by(response: &Response) -> Option<String> {
    response.header("access-control-allow-origin").map(str::to_owned)
}

const KEPT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\
                    Cache-Control: public, max-age=600\r\n\
                    Access-Control-Allow-Origin: https://backends.example\r\n\r\nkept";

#[test]
fn a_kept_response_is_for_those_only_who_get_in() {
    let (kettle, servers) = keeping("");
    assert_eq!(fill(&kettle, &servers, "").body, b"kept");
    hit(&kettle, "");
    ask_for_a_password(&kettle);
    for headers in ["", OTHERS, "Range: bytes=0-1\r\n", "If-None-Match: *\r\n"] {
        for method in ["GET", "HEAD"] {
            let refused = ask(&kettle, method, "/app/a", headers);
            assert_eq!(refused.status, 401, "{method} {headers}");
            assert_eq!(refused.header("cache-control"), Some("no-store"));
            assert!(!refused.head.contains("cache-status"), "{}", refused.head);
        }
    }
    assert_eq!(hit(&kettle, CREDENTIALS).body, b"kept");
    let words = ["--http2", "--header", "Host: localhost"];
    let words = [&words[..], &["--output", "/dev/null", "--write-out", "%{http_code}"]].concat();
    assert_eq!(kettle.curl(&words, "/app/a").succeed(), "401");
    let words = [&words[..], &["--user", "ann:secret"]].concat();
    assert_eq!(kettle.curl(&words, "/app/a").succeed(), "200");
}

/// Its content may be for one user alone, whatever is said of it.
#[test]
fn what_is_fetched_with_a_password_is_kept_for_nobody() {
    let (kettle, servers) = keeping("");
    ask_for_a_password(&kettle);
    for _ in 0..2 {
        let response = fill(&kettle, &servers, CREDENTIALS);
        assert_eq!(response.body, b"kept");
        assert!(!response.head.contains("kettle; hit"), "{}", response.head);
    }
}

#[test]
fn a_preflight_needs_no_password_and_pages_read_what_the_route_says_of_a_kept_response() {
    let cors = "cors = { origins = [\"https://page.example\"], credentials = true }";
    let (kettle, servers) = keeping(cors);
    let ours = Some("https://page.example".to_owned());
    let origin = "Origin: https://page.example\r\n";
    assert_eq!(readable_by(&fill(&kettle, &servers, "")), None, "who asks from no page");
    assert_eq!(readable_by(&hit(&kettle, origin)), ours);
    assert_eq!(readable_by(&hit(&kettle, "Origin: https://other.example\r\n")), None);
    ask_for_a_password(&kettle);
    let preflight = format!("{origin}Access-Control-Request-Method: GET\r\n");
    assert_eq!(ask(&kettle, "OPTIONS", "/app/a", &preflight).status, 204, "nobody else is asked");
    // A page may see that its user has to log in.
    let refused = ask(&kettle, "GET", "/app/a", origin);
    assert_eq!((refused.status, readable_by(&refused)), (401, ours.clone()));
    assert_eq!(readable_by(&hit(&kettle, &format!("{origin}{CREDENTIALS}"))), ours);
}

#[test]
fn what_no_site_has_takes_nothing_of_a_clients_rate() {
    let limit = "rate_limit = { requests = 1, period = \"1h\", burst = 2 }";
    let setup = Setup::default().listener("http2 = true").file("www/a", "content");
    let kettle = Kettle::start(setup.route(limit));
    let status = |words: &[&str]| kettle.curl_status(&[&["--http2"], words].concat(), "/a");
    let elsewhere = ["--header", "Host: other.example"];
    for (words, expected) in [
        (&[][..], "200"),
        (&elsewhere[..], "421"),
        (&elsewhere, "421"),
        (&[], "200"),
        (&["--http1.1"], "429"),
        (&[], "429"),
        (&elsewhere, "421"),
    ] {
        assert_eq!(status(words), expected, "{words:?}");
    }
}

#[test]
fn a_signature_is_for_the_path_that_was_asked_whatever_file_answers() {
    let route = "[[site.route]]\nprefix = \"/app\"\nroot = \"www\"\nfallback = \"/index.html\"\n\
                 signed_urls = { secret = \"secret\" }\n\
                 rewrite = [{ from = \"/app/open/*\", to = \"/app/{1}\" }]\n";
    let setup = Setup::default().file("secret", SECRET).file("www/index.html", "shell");
    let kettle = Kettle::start(setup.file("www/b", "b").more(route));
    let signed = format!("?expires=4102444800&signature={SIGNATURE}");
    let at = |path: &str| format!("{path}{signed}");
    // Nothing lies at /app/a, which is what was signed.
    let whole = ask(&kettle, "GET", &at("/app/a"), "");
    assert_eq!((whole.status, &whole.body[..]), (200, &b"shell"[..]));
    let part = ask(&kettle, "GET", &at("/app/a"), "Range: bytes=1-2\r\n");
    assert_eq!((part.status, &part.body[..]), (206, &b"he"[..]));
    assert_eq!(ask(&kettle, "HEAD", &at("/app/a"), "").status, 200);
    for target in ["/app/a", "/app/none", &at("/app/b"), &at("/app/open/a"), &at("/app/a/")] {
        let refused = ask(&kettle, "GET", target, "Range: bytes=1-2\r\n");
        assert_eq!(refused.status, 403, "{target}");
        assert!(!String::from_utf8_lossy(&refused.body).contains("shell"), "{target}");
    }
}

#[test]
fn who_may_ask_is_asked_before_anybody_is_sent_elsewhere() {
    let redirect = "redirect = [{ to = \"https://intranet.example{path}\" }]\n";
    let route = |prefix: &str, rule: &str| {
        format!("[[site.route]]\nprefix = \"{prefix}\"\n{rule}\n{redirect}")
    };
    let setup = Setup::default()
        .file("users", ANN)
        .more(&route("/in", "basic_auth = { users = \"users\" }"))
        .more(&route("/no", "deny = [\"127.0.0.0/8\"]"));
    let kettle = Kettle::start(setup);
    for (target, headers, status) in [
        ("/in/a", "", 401),
        ("/in/a", OTHERS, 401),
        ("/in/a", CREDENTIALS, 302),
        ("/no/a", "", 403),
    ] {
        let response = ask(&kettle, "GET", target, headers);
        assert_eq!(response.status, status, "{target} {headers}");
        assert_eq!(response.header("location").is_some(), status == 302, "{}", response.head);
    }
}

#[test]
fn a_path_is_rewritten_once_and_a_fallback_that_is_missing_is_not_looked_for_again() {
    let rules = "rewrite = [{ from = \"/a/**\", to = \"/a/a/{1}\" }, { from = \"/x\", to = \"/y\" }, \
                 { from = \"/y\", to = \"/x\" }]";
    let setup = Setup::default().file("www/a/a/b", "once").file("www/x", "x").file("www/y", "y");
    let gone = "[[site.route]]\nprefix = \"/gone\"\nroot = \"www\"\nfallback = \"/none.html\"\n";
    let shell = "[[site.route]]\nprefix = \"/spa\"\nroot = \"www\"\nfallback = \"/x\"\n\
                 rewrite = [{ from = \"/spa/old/**\", to = \"/spa/none/{1}\" }]\n";
    let kettle = Kettle::start(setup.route(rules).more(gone).more(shell));
    for (target, status, body) in [
        ("/a/b", 200, "once"),
        ("/a/a/b", 404, ""),
        ("/x", 200, "y"),
        ("/y", 200, "x"),
        ("/gone/b", 404, ""),
        ("/gone/none.html", 404, ""),
        ("/spa/old/b", 200, "x"),
    ] {
        let response = ask(&kettle, "GET", target, "");
        assert_eq!(response.status, status, "{target}");
        assert!(status == 404 || response.body == body.as_bytes(), "{target}");
    }
}

#[test]
fn a_compressed_form_has_its_own_head_and_tag_and_no_ranges() {
    let text = "a line of text\n".repeat(500);
    let setup = Setup::default().file("www/a.txt", text.as_str());
    let kettle = Kettle::start(setup.route("compress = [\"gzip\"]"));
    const GZIP: &str = "Accept-Encoding: gzip\r\n";
    let whole = ask(&kettle, "GET", "/a.txt", GZIP);
    let head = ask(&kettle, "HEAD", "/a.txt", GZIP);
    for name in ["content-encoding", "content-length", "etag", "vary", "last-modified"] {
        assert_eq!(head.header(name), whole.header(name), "{name}");
        assert!(head.header(name).is_some(), "{name}");
    }
    let plain = ask(&kettle, "HEAD", "/a.txt", "");
    assert_eq!(plain.announced_bytes(), text.len());
    let tags = [&whole, &plain].map(|it| it.header("etag").unwrap().to_owned());
    assert_ne!(tags[0], tags[1]);
    for (coding, own, other) in [(GZIP, &tags[0], &tags[1]), ("", &tags[1], &tags[0])] {
        let asked =
            |tag: &str| ask(&kettle, "GET", "/a.txt", &format!("{coding}If-None-Match: {tag}\r\n"));
        let same = asked(own);
        assert_eq!((same.status, same.header("etag")), (304, Some(own.as_str())));
        assert!(same.header("vary").is_some(), "{}", same.head);
        assert_eq!(asked(other).status, 200, "{other}");
    }
    // Ranges are those of the file; a HEAD has none (RFC 9110 §14.2).
    let ranged = format!("{GZIP}Range: bytes=0-3\r\n");
    let part = ask(&kettle, "GET", "/a.txt", &ranged);
    assert_eq!(
        (part.status, part.header("content-encoding"), &part.body[..]),
        (206, None, &b"a li"[..])
    );
    assert_eq!(ask(&kettle, "HEAD", "/a.txt", &ranged).status, 200);
}
