//! Folders: their slash, their index files, their listing.

use std::fs;
use std::os::unix::fs::symlink;

use kettle_config::{Route, Symlinks};

use super::routes::server;
use super::stage::Stage;

#[tokio::test]
async fn a_folder_without_its_slash_gets_a_redirect_that_stays_on_the_host() {
    let server = Stage::new()
        .file("a b/index.html", "x")
        .file("%2e/index.html", "x")
        .file("c:d/index.html", "x")
        .open();
    for (target, location) in [
        ("/a%20b", "/a%20b/"),
        ("/a%20b?x=1&y=%0d%0a", "/a%20b/?x=1&y=%0d%0a"),
        ("//a%20b", "/a%20b/"),
        ("/./x/../a%20b", "/a%20b/"),
        ("/c:d", "/c%3Ad/"),
        ("/%252e", "/%252e/"),
    ] {
        let reply = server.get(target, &[]).await;
        assert_eq!((reply.status, reply.header("location")), (301, Some(location)), "{target}");
        assert_eq!(reply.header("content-length"), Some("0"));
    }
}

#[tokio::test]
async fn no_path_redirects_to_another_host() {
    let server = Stage::new().file("evil.example/index.html", "x").open();
    for target in ["//evil.example", "///evil.example", "/%2fevil.example", "/\\evil.example"] {
        let reply = server.get(target, &[]).await;
        let location = reply.header("location").unwrap_or("/refused");
        assert!(location.starts_with('/') && !location.starts_with("//"), "{target}: {location}");
    }
}

#[tokio::test]
async fn an_index_file_answers_for_its_folder() {
    let server = Stage::new().file("a/index.html", "index").open();
    let reply = server.get("/a/", &[]).await;
    assert_eq!((reply.status, reply.text()), (200, "index"));
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
}

/// Where it is there, its route answers, which may ask for more; no worse one does in its place.
#[tokio::test]
async fn the_index_file_of_another_route_is_left_to_it() {
    let stage = Stage::new().file("index.html", "guarded").file("other.html", "other");
    let stage = stage.file("a/index.html", "guarded").file("b/index.html", "index");
    let server = stage
        .site(|site| {
            site.routes[0].index = vec!["index.html".to_owned(), "other.html".to_owned()];
            for prefix in ["/index.html", "/a/index.html/"] {
                let route = site.routes[0].clone();
                site.routes.push(Route { prefix: Some(prefix.to_owned()), root: None, ..route });
            }
        })
        .open();
    for (target, status, text) in [("/", 404, ""), ("/a/", 404, ""), ("/b/", 200, "index")] {
        let reply = server.get(target, &[]).await;
        assert_eq!(reply.status, status, "{target}");
        assert!(reply.text().contains(text) && !reply.text().contains("guarded"), "{target}");
    }
    assert_eq!(server.get("/index.html", &[]).await.status, 404);
}

#[tokio::test]
async fn a_folder_without_index_or_listing_is_forbidden() {
    let server = Stage::new().file("a/file", "x").open();
    assert_eq!(server.get("/a/", &[]).await.status, 403);
    assert_eq!(server.get("/b/", &[]).await.status, 404);
}

#[tokio::test]
async fn a_listing_is_html_or_json_as_the_client_prefers() {
    let server = Stage::new().file("a/<b>.txt", "12345").route(|route| route.listing = true).open();
    let page = server.get("/a/?sort=size&order=desc", &["Accept: text/html"]).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("vary"), Some("accept"));
    assert!(page.text().contains("&lt;b&gt;.txt"), "{}", page.text());
    assert!(page.text().contains("aria-sort=\"descending\""), "{}", page.text());

    let json = server.get("/a/", &["Accept: application/json"]).await;
    assert_eq!(json.header("content-type"), Some("application/json"));
    assert!(json.text().contains("\"name\":\"<b>.txt\""), "{}", json.text());

    let head = server.ask("HEAD", "/a/", &["Accept: application/json"]).await;
    assert_eq!(head.header("content-length"), Some(&*json.body.len().to_string()));
    assert!(head.body.is_empty());
    assert_eq!(server.get("/none/", &[]).await.status, 404);
}

#[tokio::test]
async fn a_listing_may_load_nothing_unless_the_operator_says_so() {
    let listing = Stage::new().route(|route| route.listing = true);
    let reply = listing.open().get("/", &[]).await;
    let policy = reply.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));

    let own = ("Content-Security-Policy".to_owned(), vec!["default-src 'self'".into()]);
    let listing = Stage::new().route(|route| route.listing = true);
    let server = listing.site(|site| site.headers = vec![own]).open();
    let reply = server.get("/", &[]).await;
    assert_eq!(reply.header("content-security-policy"), Some("default-src 'self'"));
}

#[tokio::test]
async fn an_index_file_comes_before_the_listing() {
    let server =
        Stage::new().file("index.html", "index").route(|route| route.listing = true).open();
    assert_eq!(server.get("/", &[]).await.text(), "index");
}

#[tokio::test]
async fn a_prefix_is_replaced_by_its_root() {
    let server = Stage::new()
        .file("a.txt", "a")
        .file("index.html", "index")
        .file(".well-known/token", "not the site's")
        .route(|route| route.prefix = Some("/img".to_owned()))
        .open();
    assert_eq!(server.get("/img/.well-known/token", &[]).await.status, 404);
    assert_eq!(server.get("/img/a.txt", &[]).await.text(), "a");
    assert_eq!(server.get("/img/", &[]).await.text(), "index");
    assert_eq!(server.get("/img?q", &[]).await.header("location"), Some("/img/?q"));
    assert_eq!(server.get("/a.txt", &[]).await.status, 404);
    assert_eq!(server.get("/", &[]).await.status, 404);
}

#[tokio::test]
async fn nothing_outside_the_root_and_nothing_hidden_is_served() {
    let server = Stage::new()
        .file(".git/config", "secret")
        .file("a/.env", "secret")
        .file(".well-known/acme-challenge/token", "public")
        .open();
    fs::write(server.folder.path().join("secret"), "secret").unwrap();
    symlink("../secret", server.path("link")).unwrap();
    for target in ["/link", "/.git/config", "/a/.env", "/.git/", "/.git", "/a/%2eenv"] {
        assert_eq!(server.get(target, &[]).await.status, 404, "{target}");
    }
    for target in ["/../secret", "/%2e%2e/secret", "/a/../../secret", "/..%2fsecret"] {
        assert_eq!(server.get(target, &[]).await.status, 400, "{target}");
    }
    let public = server.get("/.well-known/acme-challenge/token", &[]).await;
    assert_eq!(public.text(), "public");
}

#[tokio::test]
async fn a_link_that_is_not_followed_is_forbidden_and_other_files_are_tried() {
    let linked = || {
        let stage = Stage::new().file("b/file", "x").file("index.html", "shell");
        symlink("loop", stage.folder.path().join("root/loop")).unwrap();
        symlink("b", stage.folder.path().join("root/folder")).unwrap();
        symlink("loop", stage.folder.path().join("root/b/index.html")).unwrap();
        stage.route(|route| route.symlinks = Symlinks::Never)
    };
    let server = linked().open();
    for (target, status) in
        [("/loop", 403), ("/folder/file", 403), ("/b/", 403), ("/b/file", 200), ("/none", 404)]
    {
        assert_eq!(server.get(target, &[]).await.status, status, "{target}");
    }
    // As with `try_files` of nginx.
    let server = linked().route(|route| route.fallback = Some("/index.html".to_owned())).open();
    assert_eq!(server.get("/loop", &[]).await.text(), "shell");
}

#[tokio::test]
async fn the_slash_of_a_rewritten_folder_is_added_but_where_clients_may_not_know_it() {
    // The last one takes off what the answer would add.
    let server = server(
        r#"
        [[site.route]]
        prefix = "/to"
        rewrite = [{ to = "/b/c" }]
        [[site.route]]
        prefix = "/off"
        rewrite = [{ from = "/off/*", to = "/inner/{1}" }]
        [[site.route]]
        prefix = "/inner"
        root = "b"
        internal = true
        [[site.route]]
        root = "root"
        rewrite = [{ from = "/b/*/", to = "/b/{1}" }]
        "#,
    );
    for (target, status, location) in [
        ("/to?x=1", 301, Some("/b/c/?x=1")),
        ("/off/c", 404, None),
        ("/b/c", 301, Some("/b/c/")),
        ("/b/c/", 404, None),
    ] {
        let reply = server.get(target, &[]).await;
        assert_eq!((reply.status, reply.header("location")), (status, location), "{target}");
    }
}

#[tokio::test]
async fn an_expression_takes_its_place_off_where_it_says_so() {
    let server = server(
        r#"
        [[site.route]]
        prefix = "/taken"
        root = "root"
        [[site.route]]
        prefix = "/taken"
        regex = '\.html$'
        root = "b"
        strip_prefix = true
        "#,
    );
    for (target, text) in [("/taken/index.html", "b"), ("/taken/b/c/x", "c")] {
        assert_eq!(server.get(target, &[]).await.text(), text, "{target}");
    }
}
