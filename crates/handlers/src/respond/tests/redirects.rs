//! Redirects and rewrites by pattern.

use kettle_config::{Route, parse};

use super::stage::{Server, Stage};

/// A server whose route has these settings, and files.
fn server(settings: &str) -> Server {
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:8443\"\n[[site]]\nnames = [\"localhost\"]\n\
         self_signed = true\n[[site.route]]\nroot = \"x\"\n{settings}\n"
    );
    let mut config = parse(&text, "kettle.toml".as_ref()).unwrap();
    let written = config.sites[0].routes.remove(0);
    let stage = Stage::new().file("a.html", "a").file("b/index.html", "b").file(".c", "hidden");
    let more = |route: &mut Route| *route = Route { root: route.root.clone(), ..written };
    stage.route(more).open()
}

#[tokio::test]
async fn a_redirect_fills_in_what_was_asked_for() {
    for (settings, target, location) in [
        (
            "redirect = [{ to = \"https://a.test{path}\" }]",
            "/x%20y?q=1",
            "https://a.test/x%20y?q=1",
        ),
        ("redirect = [{ to = \"https://a.test/?x\" }]", "/x?q=1", "https://a.test/?x&q=1"),
        (
            "redirect = [{ to = \"https://{host}:1{path}\", keep_query = false }]",
            "/x?q",
            "https://localhost:1/x",
        ),
        ("prefix = \"/old\"\nredirect = [{ to = \"/new{rest}\" }]", "/old/x", "/new/x"),
        ("prefix = \"/old\"\nredirect = [{ to = \"/new{rest}\" }]", "/old", "/new"),
        (
            "redirect = [{ from = \"/blog/*/print\", to = \"/print/{1}\" }]",
            "/blog/a%2Bb/print",
            "/print/a%2Bb",
        ),
        ("redirect = [{ from = \"/**.php\", to = \"/?page={1}\" }]", "/x.php?q", "/?page=x&q"),
    ] {
        let reply = server(settings).get(target, &[]).await;
        assert_eq!((reply.status, reply.header("location")), (302, Some(location)), "{target}");
    }
}

#[tokio::test]
async fn the_first_that_fits_decides_and_others_get_files() {
    let server = server(
        "redirect = [{ from = \"/a/*\", to = \"/1\", status = 301 }, \
         { from = \"/a/**\", to = \"/2\", status = 308 }]",
    );
    assert_eq!(server.get("/a/x", &[]).await.status, 301);
    let reply = server.ask("POST", "/a/x/y", &[]).await;
    assert_eq!((reply.status, reply.header("location")), (308, Some("/2")));
    assert_eq!(server.get("/a.html", &[]).await.text(), "a");
}

#[tokio::test]
async fn no_request_is_sent_to_another_host() {
    let server = server("redirect = [{ from = \"/old**\", to = \"/{1}\" }]");
    for (target, location) in [
        ("/old/evil.test", "/evil.test"),
        ("/old//evil.test", "/evil.test"),
        ("/old/%0d%0aset-cookie:x", "refused"),
        ("/old/%5cevil.test", "refused"),
        ("/old%2f%2fevil.test", "refused"),
        ("/old:evil@x", "/:evil@x"),
        ("/old/%3f%23", "/%3F%23"),
        ("/old%e2%80%ae", "/%E2%80%AE"),
    ] {
        let reply = server.get(target, &[]).await;
        assert_eq!(reply.header("location").unwrap_or("refused"), location, "{target}");
    }
}

#[tokio::test]
async fn a_rewrite_is_looked_for_once_and_stays_below_the_root() {
    let settings =
        "rewrite = [{ from = \"/x/**\", to = \"/{1}\" }, { from = \"/b*\", to = \"/x/a.html\" }]";
    let server = server(settings);
    assert_eq!(server.get("/x/a.html", &[]).await.text(), "a");
    assert_eq!(server.get("/x/b/", &[]).await.text(), "b");
    let reply = server.get("/x/b?q", &[]).await;
    assert_eq!((reply.status, reply.header("location")), (301, Some("/b/?q")), "as in nginx");
    assert_eq!(server.get("/bx", &[]).await.status, 404, "rewritten once only");
    for target in ["/x/", "/x/.c", "/x/none"] {
        assert_eq!(
            server.get(target, &[]).await.status,
            404 - u16::from(target == "/x/"),
            "{target}"
        );
    }
    let server = self::server("rewrite = [{ from = \"/y*z\", to = \"/b/{1}/../.c\" }]");
    assert_eq!(server.get("/y.z", &[]).await.status, 404);
}

#[tokio::test]
async fn a_route_without_files_has_nothing_but_its_redirects() {
    let folder = Stage::new();
    let server = folder
        .route(|route| {
            route.root = None;
            route.prefix = Some("/old".to_owned());
        })
        .open();
    assert_eq!(server.get("/old/x", &[]).await.status, 404);
    assert_eq!(server.ask("PUT", "/old/x", &[]).await.status, 405);
}
