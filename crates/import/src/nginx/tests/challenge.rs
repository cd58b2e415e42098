//! Where certificate authorities look is found by HTTPS, where plain HTTP leads, or it is told which route is missing.

use super::*;

/// A server without TLS that leads elsewhere all but what it says, before one with TLS.
fn both(plain: &str, tls: &str) -> String {
    let redirect = "location / { return 301 https://$host$request_uri; }";
    let plain = format!("http {{ server {{ listen 80; {plain} {redirect} }}");
    server(tls).replace("http {", &plain)
}

/// What the server without TLS says, what that with TLS says, and the root and the backend of the route.
#[test]
fn a_place_for_authorities_becomes_a_route() {
    let name = "server_name a.example; root /srv;";
    for (plain, tls, root) in [
        ("location /.well-known/acme-challenge/ { root /acme; }", name, "/acme"),
        ("location ^~ /.well-known/acme-challenge { root /acme; }", name, "/acme"),
        ("location /.well-known/ { root /acme; }", name, "/acme"),
        ("location ~ /\\.well-known/acme-challenge { root /acme; }", name, "/acme"),
        ("location ^~ /.well-known/ { root /acme; } location ~ /\\. { deny all; }", name, "/acme"),
        ("root /acme; location /.well-known/acme-challenge/ { }", name, "/acme"),
        (
            "root /acme; location ~ /.well-known { allow all; } location ~ /\\. { deny all; }",
            name,
            "/acme",
        ),
        (
            "location ~ /\\.well-known/acme-challenge { root /acme; } location ~ /\\. { deny all; }",
            name,
            "/acme",
        ),
        ("location /.well-known/acme-challenge/ { alias /acme/; }", name, "/acme"),
        ("server_name a.example; location /.well-known/ { root /acme; }", name, "/acme"),
        ("server_name *.example; location /.well-known/ { root /acme; }", name, "/acme"),
        (
            "location /.well-known/ { root /acme; }",
            "server_name a.example; return 301 https://b.example$request_uri;",
            "/acme",
        ),
        (
            "location /.well-known/ { root /acme; }",
            "server_name a.example; root /srv; location ~ /\\. { deny all; }",
            "/acme",
        ),
        (
            "location /.well-known/ { root /acme; }",
            "server_name a.example; location / { proxy_pass http://10.0.0.1; }",
            "/acme",
        ),
    ] {
        let made = imported(&both(plain, tls));
        let route = challenge_route(&made).unwrap_or_else(|| panic!("{plain}\n{}", made.toml));
        let found = route.root.as_ref().map(|it| it.value.as_path());
        assert_eq!((found, route.deny.len()), (Some(Path::new(root)), 0), "{plain}\n{}", made.toml);
        assert!(!made.toml.contains("acme-challenge` is not"), "{plain}\n{}", made.toml);
    }
}

/// certbot makes the folder when it needs it.
#[test]
fn the_folder_for_authorities_need_not_be_there() {
    let place = "location /.well-known/acme-challenge/ { root /acme; }";
    for text in [both(place, "root /srv;"), server(&format!("root /srv; {place}"))] {
        let made = imported(&text);
        let route = challenge_route(&made).unwrap_or_else(|| panic!("{}", made.toml));
        assert_eq!(route.root.as_ref().unwrap().value, Path::new("/acme"), "{}", made.toml);
        let rewrite = "rewrite = [{ to = \"/.well-known/acme-challenge{path}\" }]";
        assert!(made.toml.contains(rewrite) && route.dotfiles, "{}", made.toml);
    }
}

#[test]
fn authorities_are_passed_on_where_they_were() {
    let place = "location /.well-known/acme-challenge/ { proxy_pass http://127.0.0.1:8888; }";
    let made = imported(&both(place, "root /srv;"));
    let route = challenge_route(&made).unwrap_or_else(|| panic!("{}", made.toml));
    assert!(route.backend.is_some(), "{}", made.toml);
}

#[test]
fn a_place_for_authorities_that_cannot_be_said_is_told_with_what_to_write() {
    for plain in [
        "location ~ ^/\\.well-known/acme-challenge/(.+)$ { return 200 \"$1.print\"; }",
        "location /.well-known/acme-challenge/ { allow 10.0.0.0/8; internal; root /acme; }",
        "location /.well-known/ { root /acme; } location ~ /\\. { deny all; }",
        "root /acme; location ~ /\\. { deny all; } location ~ /.well-known { allow all; }",
        "root /acme; location ~ /.well-known { deny all; }",
        // Another server is the default of port 80.
        "} server { listen 80; server_name b.example; location /.well-known/ { root /acme; }",
    ] {
        let made = imported(&both(plain, "server_name a.example; root /srv;"));
        assert!(challenge_route(&made).is_none(), "{plain}\n{}", made.toml);
        let told = "prefix = \"/.well-known/acme-challenge\" answers there";
        assert!(made.toml.contains(told), "{plain}\n{}", made.toml);
    }
}

/// The site's own place is not replaced.
#[test]
fn what_the_server_with_tls_says_decides() {
    let place = |root: &str| format!("location /.well-known/acme-challenge/ {{ root {root}; }}");
    let made = imported(&both(&place("/plain"), &format!("root /srv; {}", place("/tls"))));
    let route = challenge_route(&made).unwrap();
    assert_eq!(route.root.as_ref().unwrap().value, Path::new("/tls"), "{}", made.toml);
    assert!(made.toml.contains("is answered as the server with TLS says"), "{}", made.toml);
}

fn challenge_route(made: &Imported) -> Option<kettle_config::Route> {
    let config = made.config().unwrap_or_else(|found| panic!("{}\n{}", shown(&found), made.toml));
    let mut routes = config.sites.into_iter().flat_map(|site| site.routes);
    routes.find(|route| route.prefix.as_deref() == Some("/.well-known/acme-challenge"))
}
