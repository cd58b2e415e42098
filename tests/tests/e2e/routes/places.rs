//! Which of the routes of a site answers: as nginx finds its locations, and where backends are sent what.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use kettle_tests::tool::wait_until_listening;

use super::*;

/// Random places, each with a number that it answers with, of so many sites.
#[test]
fn random_sites_find_the_places_that_nginx_finds() {
    if !Path::new(NGINX_PROGRAM).exists() {
        return skip("nginx is not installed");
    }
    let mut random = Random(7);
    let sites: Vec<Vec<Place>> = (0..SITES).map(|_| random.places()).collect();
    let folder = tempfile::tempdir().unwrap();
    let address = unused_address();
    let conf = folder.path().join("nginx.conf");
    fs::write(&conf, nginx_conf(&sites, folder.path(), &address.to_string())).unwrap();
    let words = ["-e", "stderr", "-c", conf.to_str().unwrap()];
    let _nginx = Tool::new(NGINX_PROGRAM).args(words).start();
    wait_until_listening(address);
    let mut names: Vec<String> = (0..SITES).map(|site| format!("\"s{site}\"")).collect();
    names.push("\"localhost\"".to_owned());
    let listener = format!("kind = \"http\"\nsites = [{}]", names.join(", "));
    let kettle =
        Kettle::start(Setup::default().listener("").listener(&listener).more(&toml(&sites)));
    let [mut theirs, mut ours] = [address, kettle.addresses[1]].map(Wire::connect);
    for (site, places) in sites.iter().enumerate() {
        for path in PATHS {
            let request = format!("GET {path} HTTP/1.1\r\nHost: s{site}\r\n\r\n");
            let [expected, found] = [&mut theirs, &mut ours].map(|server| {
                let response = server.exchange(request.as_bytes());
                let body = String::from_utf8_lossy(&response.body).into_owned();
                (response.status, if response.status == 200 { body } else { String::new() })
            });
            assert_eq!(found, expected, "{path} of site {site}: {places:#?}");
        }
    }
}

/// A place of both programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// Without a text it is an expression of the whole site.
    text: &'static str,
    kind: Kind,
    /// An expression within the place, or one of the site.
    regex: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Beginning,
    First,
    Exact,
    Expression,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    /// Places that no other is like. One within another follows it.
    fn places(&mut self) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        for _ in 0..self.below(12) {
            let text = TEXTS[self.below(TEXTS.len())];
            let regex = Some(REGEXES[self.below(REGEXES.len())]);
            let kinds = [Kind::Beginning, Kind::First, Kind::Exact, Kind::Expression];
            let place = match kinds[self.below(kinds.len())] {
                Kind::Expression => Place { text: "", kind: Kind::Expression, regex },
                kind => Place { text, kind, regex: None },
            };
            let is_exact = |it: &Place| it.kind == Kind::Exact;
            let is_like = |other: &Place| {
                other.text == place.text
                    && other.regex == place.regex
                    && is_exact(other) == is_exact(&place)
            };
            if places.iter().any(is_like) {
                continue;
            }
            places.push(place);
            if matches!(place.kind, Kind::Beginning | Kind::First) && self.below(3) == 0 {
                places.push(Place { regex, ..place });
            }
        }
        places
    }
}

fn nginx_conf(sites: &[Vec<Place>], folder: &Path, address: &str) -> String {
    let folder = folder.display();
    let mut text = format!(
        "daemon off;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\nkeepalive_requests 100000;\n"
    );
    for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        writeln!(text, "{name}_temp_path {folder}/{name};").unwrap();
    }
    for (site, places) in sites.iter().enumerate() {
        writeln!(text, "server {{ listen {address}; server_name s{site}; root /nowhere;").unwrap();
        for (number, place) in places.iter().enumerate() {
            let Place { text: path, kind, regex } = place;
            let said = match (kind, regex) {
                (Kind::Beginning, _) => path.to_string(),
                (Kind::First, _) => format!("^~ {path}"),
                (Kind::Exact, _) => format!("= {path}"),
                (Kind::Expression, regex) => spoken(regex.unwrap()),
            };
            let is_within = !path.is_empty() && regex.is_some();
            if is_within {
                continue;
            }
            write!(text, "location {said} {{ return 200 {number};").unwrap();
            let inner =
                places.get(number + 1).filter(|inner| inner.text == *path && !path.is_empty());
            if let Some(regex) = inner.and_then(|inner| inner.regex) {
                let number = number + 1;
                write!(text, " location {} {{ return 200 {number}; }}", spoken(regex)).unwrap();
            }
            text.push_str(" }\n");
        }
        text.push_str("}\n");
    }
    text + "}\n"
}

/// An expression as nginx has it.
fn spoken(regex: &str) -> String {
    match regex.strip_prefix("(?i)") {
        Some(rest) => format!("~* {rest}"),
        None => format!("~ {regex}"),
    }
}

fn toml(sites: &[Vec<Place>]) -> String {
    let mut text = String::new();
    for (site, places) in sites.iter().enumerate() {
        writeln!(text, "[[site]]\nnames = [\"s{site}\"]\nself_signed = true").unwrap();
        if places.is_empty() {
            text.push_str("[[site.route]]\nexact = \"/nothing\"\nrespond = { status = 404 }\n");
        }
        for (number, Place { text: path, kind, regex }) in places.iter().enumerate() {
            text.push_str("[[site.route]]\n");
            match kind {
                Kind::Expression => {}
                Kind::Exact => writeln!(text, "exact = \"{path}\"").unwrap(),
                Kind::Beginning | Kind::First => {
                    writeln!(text, "text_prefix = \"{path}\"").unwrap()
                }
            }
            match (kind, regex) {
                (_, Some(regex)) => writeln!(text, "regex = '{regex}'").unwrap(),
                (Kind::First, None) => text.push_str("first = true\n"),
                _ => {}
            }
            writeln!(text, "respond = {{ body = \"{number}\" }}").unwrap();
        }
    }
    text
}

/// The same path is sent stripped by one route and with something before it by another; what the server says of itself comes back.
#[test]
fn backends_get_their_own_paths_and_redirects_come_back() {
    let server = Backend::listen();
    let route = |settings: &str| {
        format!("[[site.route]]\nbackend = \"app\"\nbackend_host = \"app.test\"\n{settings}\n")
    };
    let setup = Setup::default()
        .more(&backend("app", "", &[server.address()]))
        .more(&route("prefix = \"/strip\"\nstrip_prefix = true"))
        .more(&route("text_prefix = \"/swap/\"\nstrip_prefix = true\nadd_prefix = \"/v1/\""))
        .more(&route("regex = \"^/re/\"\nadd_prefix = \"/base\""));
    let kettle = Kettle::start(setup);
    for suite in ONE_OF_EACH_VERSION {
        let mut client = kettle.connect(suite);
        for (target, sent, location, back) in [
            ("/strip/a%20b?q=1", "/a%20b?q=1", "http://app.test/x?y", "/strip/x?y"),
            ("/strip", "/", "https://other.test/", "https://other.test/"),
            ("/swap/a//b", "/v1/a/b", "http://app.test/v1/x", "/swap/x"),
            ("/swap/", "/v1/", "http://app.test/v2/x", "http://app.test/v2/x"),
            ("/re/a", "/base/re/a", "http://app.test/base/re/b", "/re/b"),
            ("/re/a", "/base/re/a", "//evil.test/", "//evil.test/"),
        ] {
            client.send(&request("GET", target, "")).unwrap();
            let head = answer(
                &mut server.accept(),
                &format!(
                    "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                ),
            );
            assert!(head.starts_with(&format!("GET {sent} HTTP/1.1\r\n")), "{target}: {head}");
            assert_eq!(client.response().header("location"), Some(back), "{target}");
        }
    }
}

const NGINX_PROGRAM: &str = "/usr/sbin/nginx";
const SITES: usize = 60;
const TEXTS: [&str; 9] = ["/", "/a", "/ab", "/a/", "/a/b", "/a/b/", "/b", "/a.php", "/b/c.php"];
const REGEXES: [&str; 6] = [r"\.php$", "^/a", "b", "/$", r"(?i)\.PHP", "^/(a|b)/.*c"];
const PATHS: [&str; 24] = [
    "/",
    "/a",
    "/ab",
    "/abc",
    "/a/",
    "/a/b",
    "/a/b/",
    "/a/bc",
    "/a/b/c.php",
    "/b",
    "/bc",
    "/b/c.php",
    "/b/c.phpx",
    "/a.php",
    "/a.PHP",
    "/a.php/",
    "/c",
    "/c.php",
    "//a//b",
    "/a/../b",
    "/%61b",
    "/a%2ephp",
    "/x/./a",
    "/c/",
];

/// Two routes take other prefixes off and ask other backends, and one store keeps what both say: by the URL that clients ask for.
#[test]
fn stripped_paths_are_kept_apart_and_behind_their_guards() {
    let [open, closed] = ["open", "closed"].map(saying);
    let folder = tempfile::tempdir().unwrap();
    let route = |name: &str, settings: &str| {
        format!(
            "[[site.route]]\nprefix = \"/{name}\"\nstrip_prefix = true\nbackend = \"{name}\"\n\
             cache = {{ store = \"main\" }}\n{settings}\n"
        )
    };
    let setup = Setup::default()
        .more(&format!("[[cache]]\nname = \"main\"\ndirectory = \"{}\"\n", folder.path().display()))
        .more(&backend("open", "", &[open.address()]))
        .more(&backend("closed", "", &[closed.address()]))
        .more(&route("open", ""))
        .more(&route("closed", "allow = [\"192.0.2.0/24\"]"));
    let kettle = Kettle::start(setup);
    let mut client = Dialer::default().connect(kettle.address());
    for _ in 0..3 {
        for (target, status, body) in [("/open/x", 200, &b"open"[..]), ("/closed/x", 403, b"")] {
            client.send(&get(target)).unwrap();
            let response = client.response();
            assert_eq!(response.status, status, "{target}");
            assert!(status != 200 || response.body == body, "{target}");
        }
    }
    kettle.folder.change_config("allow = [\"192.0.2.0/24\"]", "");
    kettle.ctl(&["reload"]).run();
    assert_eq!(client.get("/closed/x").body, b"closed");
}
