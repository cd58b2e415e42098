//! Maps and other words in headers of responses, in redirects and in conditions.

use kettle_config::{Located, parse};

use super::stage::{Server, Stage};

/// A server with this text before its only site, and these settings behind the site's header.
fn server(maps: &str, settings: &str) -> Server {
    let mut stage = Stage::new().file("a", "content").file("b/a", "other");
    let folder = stage.folder.path().join("root");
    let text = format!(
        "{maps}\n[[listener]]\naddress = \"127.0.0.1:8443\"\n[[site]]\nnames = [\"localhost\"]\nself_signed = true\n{settings}\n"
    );
    let mut config = parse(&text, "kettle.toml".as_ref()).unwrap();
    for route in &mut config.sites[0].routes {
        let root = route.root.take().map(|root| root.value.ends_with("b"));
        let root = root.map(|is_b| if is_b { folder.join("b") } else { folder.clone() });
        route.root = root.map(Located::not_written);
    }
    stage.config = config;
    stage.open()
}

const CORS: &str = r#"
    [[map]]
    name = "cors"
    of = "{header:origin}"
    values = { "https://a.example" = "https://a.example" }
    [map.regex]
    '^https://([a-z]+\.)?good\.example$' = "{0}"
    "#;

#[tokio::test]
async fn what_is_remembered_of_a_file_is_not_what_one_client_was_told() {
    let server = server(
        CORS,
        "headers = { \"Access-Control-Allow-Origin\" = \"{map:cors}\", \"X-B\" = \"{{\" }\n[[site.route]]\nroot = \"/root\"",
    );
    for _ in 0..3 {
        for (origin, said) in [
            ("https://a.example", Some("https://a.example")),
            ("https://x.good.example", Some("https://x.good.example")),
            ("https://bad.example", None),
            ("https://x.good.example.bad", None),
        ] {
            for (target, status) in [("/a", 200), ("/none", 404), ("/b", 301)] {
                let reply = server.get(target, &[&format!("Origin: {origin}")]).await;
                let own = reply.header("access-control-allow-origin");
                assert_eq!((reply.status, own), (status, said), "{origin} {target}");
                assert_eq!(reply.header("x-b"), Some("{"));
            }
        }
        let reply = server.get("/a", &[]).await;
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn a_route_says_its_own_and_a_response_what_it_needs() {
    let server = server(
        "",
        "headers = { \"X-A\" = \"{host}\", \"X-B\" = \"{query:b}\", Allow = \"{host}\" }\n\
         [[site.route]]\nroot = \"/root\"\nheaders = { \"X-A\" = \"{method} {path}\", \"X-B\" = [] }\n\
         [[site.route]]\nprefix = \"/b\"\nroot = \"/b\"\nheaders = { \"X-A\" = [\"1\", \"{cookie:c}\"] }",
    );
    let reply = server.get("/a?b=1", &[]).await;
    assert_eq!((reply.header("x-a"), reply.header("x-b")), (Some("GET /a"), None));
    let reply = server.get("/b/a?b=1", &["Cookie: c=2"]).await;
    assert_eq!(reply.header("x-b"), Some("1"));
    assert!(reply.head.contains("x-a: 1\r\nx-a: 2\r\n"), "{}", reply.head);
    let reply = server.ask("PUT", "/a", &[]).await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
}

#[tokio::test]
async fn a_map_may_be_where_a_redirect_leads() {
    let maps = r#"
        [[map]]
        name = "target"
        of = "{path}"
        values = { "/old" = "https://b.example/new?x=1", "/here" = "/there" }
        [map.regex]
        '^/blog/(.*)$' = "/articles/{1}"
        [[map]]
        name = "part"
        of = "{query:lang}"
        default = "en/?a=b"
        [map.regex]
        '.+' = "{0}"
        "#;
    let server = server(
        maps,
        "[[site.route]]\nroot = \"/root\"\n\
         redirect = [{ to = \"{map:target}\", status = 301 }, \
         { from = \"/part\", to = \"https://c.example/{map:part}\", keep_query = false }, \
         { from = \"/words\", to = \"{scheme}://{host}:{port}/x/{header:x-a}{cookie:c}\" }]",
    );
    for (target, fields, status, location) in [
        ("/old", &[][..], 301, Some("https://b.example/new?x=1")),
        ("/old?y", &[], 301, Some("https://b.example/new?x=1&y")),
        ("/here", &[], 301, Some("/there")),
        ("/blog/a%20b", &[], 301, Some("/articles/a%20b")),
        ("/blog/https://d.example", &[], 301, Some("/articles/https%3A/d.example")),
        // The map says nothing, so the next is asked, or the files are.
        ("/a", &[], 200, None),
        ("/part", &[], 302, Some("https://c.example/en/?a=b")),
        ("/part?lang=@d.example?", &[], 302, Some("https://c.example/%40d.example%3F")),
        ("/part?lang=/d.example", &[], 302, Some("https://c.example//d.example")),
        (
            "/words",
            &["X-A: //d.example:1", "Cookie: c=@?#"],
            302,
            Some("https://localhost:443/x///d.example%3A1%40%3F%23"),
        ),
    ] {
        let reply = server.get(target, fields).await;
        assert_eq!((reply.status, reply.header("location")), (status, location), "{target}");
    }
}

#[tokio::test]
async fn a_map_chooses_a_route() {
    let maps = "[[map]]\nname = \"canary\"\nof = \"{cookie:canary}\"\nvalues = { yes = \"1\" }";
    let server = server(
        maps,
        "[[site.route]]\nroot = \"/b\"\nwhen = [{ of = \"{map:canary}\", text = \"1\" }]\n[[site.route]]\nroot = \"/root\"",
    );
    for (cookie, body) in [("canary=YES", "other"), ("canary=no", "content"), ("x=yes", "content")]
    {
        assert_eq!(
            server.get("/a", &[&format!("Cookie: {cookie}")]).await.text(),
            body,
            "{cookie}"
        );
    }
}

#[tokio::test]
async fn what_may_be_kept_may_go_by_a_request() {
    let control = r#"headers = { "Cache-Control" = "private{query:b}" }"#;
    let server =
        server("", &format!("[[site.route]]\nroot = \"/root\"\nexpires = \"1m\"\n{control}"));
    for (target, status, said) in [
        ("/a", 200, &["max-age=60", "private"][..]),
        ("/a?b=,x", 200, &["max-age=60", "private,x"]),
        ("/none?b=,x", 404, &["private"]),
        ("/none?b=x", 404, &[]),
    ] {
        let reply = server.get(target, &[]).await;
        let lines = reply.head.lines().filter_map(|it| it.strip_prefix("cache-control: "));
        assert_eq!((reply.status, lines.collect::<Vec<_>>()), (status, said.to_vec()), "{target}");
    }
}
