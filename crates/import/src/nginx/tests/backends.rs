//! Backends: none answers for another, and none is asked for what nginx would not ask it for.

use super::*;

/// What stands in `http`, two targets of its routes, and where the requests of each go.
#[test]
fn two_targets_are_two_backends() {
    let long = "a".repeat(70);
    for (http, [one, other], expected) in [
        (
            "",
            ["http://unix:/a/app-main/web.sock", "http://unix:/a/app/main-web.sock"],
            ["unix:/a/app-main/web.sock", "unix:/a/app/main-web.sock"],
        ),
        (
            "",
            [&format!("http://unix:/{long}/b"), &format!("http://unix:/{long}/c")],
            [&*format!("unix:/{long}/b"), &format!("unix:/{long}/c")],
        ),
        (
            "upstream api { server 10.0.0.1:1; } upstream api-tls { server 10.0.0.2:2; }",
            ["https://api", "http://api-tls"],
            ["10.0.0.1:1", "10.0.0.2:2"],
        ),
        ("upstream App { server 10.0.0.1:1; }", ["http://app", "http://APP"], ["10.0.0.1:1"; 2]),
        ("", ["http://10.0.0.1", "http://10.0.0.1:80"], ["10.0.0.1:80"; 2]),
    ] {
        let text = server(&format!(
            "location /a/ {{ proxy_pass {one}; }} location /b/ {{ proxy_pass {other}; }}"
        ));
        let config = config(&text.replacen("http {", &format!("http {{ {http}"), 1));
        let asked = config.sites[0].routes.iter().filter_map(|route| {
            let own = config.backends.iter().find(|it| Some(&it.name) == route.backend.as_ref())?;
            Some(own.servers[0].address.to_string())
        });
        assert_eq!(asked.collect::<Vec<_>>(), expected, "{text}");
        assert_eq!(config.backends.len(), if expected[0] == expected[1] { 1 } else { 2 });
    }
}

#[test]
fn streams_have_backends_of_their_own() {
    let text = "stream { server { listen 1; proxy_pass unix:/a-b/c; } \
                server { listen 2; proxy_pass unix:/a/b-c; proxy_timeout 1h; } \
                server { listen 3; proxy_pass unix:/a/b-c; } }";
    let config = config(text);
    let names: Vec<&str> = config.backends.iter().map(|it| it.name.value.as_str()).collect();
    assert_eq!(names, ["unix:-a-b-c", "unix:-a-b-c-2", "unix:-a-b-c-3"]);
    let both = server("location /b/ { proxy_pass http://10.0.0.1:1; }")
        + " stream { server { listen 1; proxy_pass 10.0.0.1:1; } }";
    assert_eq!(super::config(&both).backends.len(), 2);
}

/// What is written in a location whose requests are passed on, or beside it, and what is said of it.
#[test]
fn a_backend_is_not_asked_for_another_query() {
    let unsaid = "a backend is asked for the query that the client asks for";
    for (own, beside) in [
        ("rewrite ^/api/item/(.*)$ /api/index?item=$1 break;", ""),
        ("rewrite ^/api/item/(.*)$ /api/x/$1? break;", ""),
        ("", "rewrite ^/api/item/(.*)$ /api/index?item=$1 last;"),
        ("", "location ~ ^/api/item/.*$ { rewrite ^ /api/index?item=1 last; }"),
    ] {
        let words = format!("{beside} location /api/ {{ {own} proxy_pass http://127.0.0.1:1; }}");
        let made = imported(&server(&words));
        assert!(made.toml.contains(unsaid), "{words}\n{}", made.toml);
        assert!(!made.toml.contains("rewrite = "), "{words}\n{}", made.toml);
    }
    let words = "location /api/ { rewrite ^/api/a/(.*)$ /api/b/$1 break; proxy_pass http://a; }";
    assert!(imported(&server(words)).toml.contains("rewrite = "));
    // Files have none.
    let words = "root /srv; rewrite ^/a/(.*)$ /b/x?q=$1 last;";
    assert!(imported(&server(words)).toml.contains("rewrite = "));
}

#[test]
fn a_field_that_nginx_takes_away_is_told() {
    let words = "location /b/ { proxy_pass http://a; proxy_set_header Accept-Encoding ''; }";
    let made = imported(&server(words));
    let expected = "`proxy_set_header Accept-Encoding \"\"` is carried over as an empty field";
    assert!(made.toml.contains(expected), "{}", made.toml);
}
