//! Access to a route: by network, by name and password.

use std::fs;
use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kettle_config::{BasicAuth, Config, ErrorPage, Located, Route, parse};

use super::stage::{Reply, Server, Stage};
use crate::route::Router;

/// Lets `ann` with the password `secret` ask a route.
pub(super) fn asks_for_a_password(stage: Stage) -> Stage {
    let path = stage.folder.path().join("users");
    fs::write(&path, format!("ann:{}\n", bcrypt::hash("secret", 4).unwrap())).unwrap();
    stage.route(|route| {
        let users = Located::not_written(path);
        route.basic_auth = Some(BasicAuth { users, ..BasicAuth::default() });
    })
}

pub(super) fn credentials(text: &str) -> String {
    format!("Authorization: Basic {}", STANDARD.encode(text))
}

async fn from(server: &Server, client: &str, target: &str) -> Reply {
    let client: IpAddr = client.parse().unwrap();
    let text = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    server.send_from(client, &text, Some("localhost"), false).await
}

/// The first route of a configuration with these settings.
pub(super) fn route(settings: &str) -> Route {
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:1\"\n[[site]]\nnames = [\"a\"]\nself_signed = true\n\
         [[site.route]]\nroot = \"/\"\n{settings}"
    );
    let mut config: Config = parse(&text, "kettle.toml".as_ref()).unwrap();
    config.sites[0].routes.remove(0)
}

#[tokio::test]
async fn a_network_that_may_not_ask_gets_403_whatever_it_asks_for() {
    let Route { deny, redirects, .. } =
        route("deny = [\"192.0.2.0/24\"]\nredirect = [{ from = \"/old\", to = \"/new\" }]");
    let stage = Stage::new().file("a", "x").file("index.html", "shell");
    let server = stage
        .route(|route| {
            (route.deny, route.redirects) = (deny, redirects);
            route.fallback = Some("/index.html".to_owned());
            route.listing = true;
        })
        .open();
    for target in ["/a", "/none", "/old", "/", "/%61", "//a", "/x/../a"] {
        let reply = from(&server, "192.0.2.9", target).await;
        assert_eq!((reply.status, reply.notes.refusal), (403, Some("network")), "{target}");
        assert_eq!(reply.header("etag"), None);
        assert!(from(&server, "198.51.100.9", target).await.status < 400, "{target}");
    }
    let text = "OPTIONS /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let reply = server.send_from([192, 0, 2, 9].into(), text, None, false).await;
    assert_eq!(reply.status, 403);
}

#[tokio::test]
async fn who_has_no_right_password_gets_401_and_nothing_else() {
    let stage = Stage::new().file("a", "x").file("a.gz", "packed").file("index.html", "shell");
    let server = asks_for_a_password(stage)
        .route(|route| {
            route.fallback = Some("/index.html".to_owned());
            route.precompressed = vec![kettle_config::Coding::Gzip];
            route.listing = true;
        })
        .open();
    let right = credentials("ann:secret");
    let etag = server.get("/a", &[&right]).await.header("etag").unwrap().to_owned();
    let condition = format!("If-None-Match: {etag}");
    assert_eq!(server.get("/a", &[&right, &condition]).await.status, 304);
    for wrong in ["ann:Secret", "ann:", "bob:secret", ":", "ann", "ann:secret:"] {
        let reply = server.get("/a", &[&credentials(wrong), &condition]).await;
        assert_eq!((reply.status, reply.notes.refusal), (401, Some("credentials")), "{wrong}");
        assert_eq!(reply.notes.user, None);
    }
    for target in ["/a", "/none", "/", "/index.html", "/a.gz"] {
        for fields in [&[&*condition][..], &["Accept-Encoding: gzip", "Range: bytes=0-0"]] {
            let reply = server.get(target, fields).await;
            assert_eq!(
                (reply.status, reply.notes.refusal),
                (401, Some("no-credentials")),
                "{target}"
            );
            let challenge = "Basic realm=\"restricted\", charset=\"UTF-8\"";
            assert_eq!(reply.header("www-authenticate"), Some(challenge));
            assert_eq!((reply.header("etag"), reply.header("vary")), (None, None));
        }
    }
    for method in ["HEAD", "OPTIONS", "POST"] {
        assert_eq!(server.ask(method, "/a", &[]).await.status, 401, "{method}");
    }
    assert_eq!(server.get("/a", &[&right, &right]).await.status, 401, "two are none");
    let reply = server.get("/none", &[&right]).await;
    assert_eq!((reply.text(), reply.notes.user.as_deref()), ("shell", Some("ann")));
    assert_eq!(reply.header("www-authenticate"), None);
}

#[tokio::test]
async fn a_right_password_is_believed_for_a_while() {
    let server = asks_for_a_password(Stage::new().file("a", "x")).open();
    let right = credentials("ann:secret");
    assert_eq!(server.get("/a", &[&right]).await.status, 200);
    for seconds in [1, 400, 1] {
        server.clock.pass(Duration::from_secs(seconds));
        assert_eq!(server.get("/a", &[&right]).await.status, 200);
        assert_eq!(server.get("/a", &[&credentials("ann:other")]).await.status, 401);
    }
}

#[tokio::test]
async fn the_longest_prefix_decides_who_is_asked_and_no_spelling_goes_round_it() {
    let stage = Stage::new().file("open", "o").file("closed/a", "secret").file("closedish", "c");
    let mut stage = asks_for_a_password(stage);
    let site = &mut stage.config.sites[0];
    let folder = site.routes[0].root.as_ref().unwrap().value.clone();
    let open = Route { root: site.routes[0].root.clone(), ..Route::default() };
    site.routes[0].prefix = Some("/closed".to_owned());
    site.routes[0].root = Some(Located::not_written(folder.join("closed")));
    site.routes.push(open);
    let server = stage.open();
    for target in ["/open", "/closedish", "/closed/../open", "/OPEN/../open"] {
        assert_eq!(server.get(target, &[]).await.status, 200, "{target}");
    }
    for target in [
        "/closed",
        "/closed/",
        "/closed/a",
        "//closed/a",
        "/./closed/a",
        "/x/../closed/a",
        "/%63losed/a",
        "/closed//a",
        "/closed/./a",
        "/open/../closed/a",
        "/closed?x",
        "/closed/a?",
        "https://localhost/closed/a",
    ] {
        assert_eq!(server.get(target, &[]).await.status, 401, "{target}");
    }
    for target in ["/closed%2fa", "/open/%2e%2e/closed/a", "/closed\\a"] {
        assert_eq!(server.get(target, &[]).await.status, 404, "{target}");
    }
    assert_eq!(server.get("/..%2fclosed/a", &[]).await.status, 400);
    assert_eq!(server.get("/Closed/a", &[]).await.status, 404);
    assert_eq!(server.get("/closed/a", &[&credentials("ann:secret")]).await.text(), "secret");
}

#[tokio::test]
async fn a_sites_page_for_401_is_shown_without_a_password() {
    let stage = asks_for_a_password(Stage::new().file("a", "x"));
    let page = stage.folder.path().join("401.html");
    fs::write(&page, "ask the office").unwrap();
    let pages = [(401, ErrorPage::File(Located::not_written(page)))].into();
    let server = stage.site(|site| site.error_pages = pages).open();
    let reply = server.get("/a", &[]).await;
    assert_eq!((reply.status, reply.text()), (401, "ask the office"));
    assert!(reply.header("www-authenticate").is_some());
}

#[tokio::test]
async fn a_file_of_users_with_a_mistake_is_not_taken() {
    let stage = asks_for_a_password(Stage::new());
    let path = stage.folder.path().join("users");
    fs::write(&path, "# users\nann:$apr1$x$y\n").unwrap();
    let diagnostics =
        Router::build(&stage.config, &Default::default(), &Default::default(), None).unwrap_err();
    let [diagnostic] = &*diagnostics else { panic!("{diagnostics:?}") };
    assert_eq!((&diagnostic.path, diagnostic.line), (&path, 2));
    let help = format!("run `htpasswd -B {} ann`", path.display());
    assert_eq!(diagnostic.help.as_deref(), Some(&*help));
}
