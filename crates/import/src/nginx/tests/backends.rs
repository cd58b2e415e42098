//! Backends: none answers for another, and none is asked for what nginx would not ask it for.

use super::shown::left;
use super::*;

/// The text in `http`, two targets of its routes, and where the requests of each go.
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

/// The text in a location whose requests are passed on, or beside it, and the routes that are left.
#[test]
fn a_backend_is_asked_for_the_query_that_a_rewrite_says() {
    let api = |own: &str| format!("location /api/ {{ {own} proxy_pass http://127.0.0.1:1; }}");
    for (words, expected) in [
        (
            api("rewrite ^/api/item/(.*)$ /api/index?item=$1 break;"),
            "/open/* /api/*(^/api/item/(.*)$)->> / =/api->301",
        ),
        (
            api("rewrite ^/api/item/(.*)$ /api/x/$1? break;"),
            "/open/* /api/*(^/api/item/(.*)$)->> / =/api->301",
        ),
        (
            api("rewrite ^/api/item/(.*)$ /api/i?i=$1&$args&x=$arg_y? break;"),
            "/open/* /api/*(^/api/item/(.*)$)->> / =/api->301",
        ),
        (
            api("rewrite ^/api/item/(.*)$ /open/x?i=$1 break;"),
            "/open/* /api/*(^/api/item/(.*)$)=>> / =/api->301",
        ),
        (
            api("rewrite ^/api/a/(.*)$ /api/b/$1 break;"),
            "/open/* /api/*(^/api/a/(.*)$)->> / =/api->301",
        ),
        (api("rewrite ^/api/a/(.*)$ /open/$1 break;"), "/open/* /api/a/*> /api/*> / =/api->301"),
        (
            "rewrite ^/api/item/(.*)$ /api/index?item=$1 last;".to_owned() + &api(""),
            "|(^/api/item/(.*)$)-> /open/* /api/*> / =/api->301",
        ),
        (
            "location ~ ^/api/item/.*$ { rewrite ^ /api/index?item=1 last; }".to_owned() + &api(""),
            "/open/* /api/*> ~^/api/item/.*$-> / =/api->301",
        ),
    ] {
        left(&[(&words, expected)]);
    }
}

/// The text beside a `proxy_pass`, and what is made of it.
#[test]
fn what_backends_say_of_redirects_and_cookies_is_changed_as_in_nginx() {
    for (words, expected) in [
        ("proxy_redirect off;", "backend_redirect = []\n"),
        ("if ($arg_slow) { limit_rate 10k; }", "limit_rate = 10240\n"),
        (
            "proxy_redirect http://in/ /c/;",
            "backend_redirect = [{ from = \"http://in/\", to = \"/c/\" }]\n",
        ),
        (
            "proxy_redirect default; proxy_redirect http://$host:$server_port/ https://$http_host/;",
            "backend_redirect = [{ from = \"http://a/x\", to = \"/b/\" }, \
             { from = \"http://{host}:443/\", to = \"https://{host}/\" }]\n",
        ),
        (
            "proxy_redirect ~*^http://o:(?<port>[0-9]+)/(.*)$ $scheme://x/p$port/$2;",
            "backend_redirect = [{ regex = \"(?i)^http://o:(?<port>[0-9]+)/(.*)$\", to = \"{scheme}://x/p{port}/{2}\" }]\n",
        ),
        ("proxy_redirect http://in/ $uri;", "backend_redirect = []\n"),
        (
            "proxy_cookie_path / '/; Secure'; proxy_cookie_path '~/{a}' /$0;",
            "cookie_path = [{ from = \"/\", to = \"/; Secure\" }, { regex = \"/\\\\{a\\\\}\", to = \"/{0}\" }]\n",
        ),
        (
            "proxy_cookie_domain in.local $host;",
            "cookie_domain = [{ from = \"in.local\", to = \"{host}\" }]\n",
        ),
        (
            "proxy_cookie_flags ~ secure SameSite=Lax; proxy_cookie_flags ~*^s nosecure; proxy_cookie_flags s httponly;",
            "cookie_flags = [{ flags = [\"secure\", \"samesite=lax\"] }, \
             { regex = \"(?i)^s\", flags = [\"nosecure\"] }, { name = \"s\", flags = [\"httponly\"] }]\n",
        ),
    ] {
        let made = imported(&server(&format!("location /b/ {{ proxy_pass http://a/x; {words} }}")));
        assert!(made.toml.contains(expected), "{words}\n{}", made.toml);
        made.config().unwrap();
    }
    for words in ["", "proxy_redirect default;", "proxy_cookie_path off; proxy_cookie_flags off;"] {
        let made = imported(&server(&format!("location /b/ {{ proxy_pass http://a/x; {words} }}")));
        for setting in ["backend_redirect", "cookie_"] {
            assert!(!made.toml.contains(setting), "{words}\n{}", made.toml);
        }
    }
}

#[test]
fn a_field_that_nginx_takes_away_is_taken_away() {
    let words = "location /b/ { proxy_pass http://a; proxy_set_header Accept-Encoding ''; }";
    let made = imported(&server(words));
    assert!(made.toml.contains("\"Accept-Encoding\" = []"), "{}", made.toml);
}

/// The text beside a `proxy_pass` by HTTPS, the name that the certificate must show, and whether a comment says more.
#[test]
fn a_certificate_shows_one_name() {
    for (words, expected, is_told) in [
        ("", "a.example", false),
        ("proxy_ssl_name $proxy_host;", "a.example", false),
        ("proxy_ssl_name $host;", "a.example", true),
        ("proxy_ssl_name b.example;", "b.example", false),
        ("proxy_ssl_name b.example:444;", "b.example", false),
    ] {
        let words = format!("location / {{ {words} proxy_pass https://a.example:443; }}");
        let made = imported(&server(&words));
        let config = made.config().unwrap_or_else(|found| panic!("{words}\n{}", shown(&found)));
        let tls = config.backends[0].tls.as_ref().unwrap();
        assert_eq!(tls.name.as_deref(), Some(expected), "{}", made.toml);
        let told = made.toml.contains("`proxy_ssl_name $host` is not carried over");
        assert_eq!(told, is_told, "{}", made.toml);
    }
    let wrong = "location / {\nproxy_pass https://a;\nproxy_ssl_name 'a b';\n}";
    let found = imported(&server(wrong)).config().unwrap_err();
    assert_eq!(found.iter().map(|it| it.line).collect::<Vec<_>>(), [3], "{}", shown(&found));
}

/// The text beside a `proxy_pass` by HTTPS, and what the server is offered.
#[test]
fn servers_are_offered_what_is_said_of_them_alone() {
    for (words, versions, suites) in [
        ("ssl_protocols TLSv1.3;", "tls1.2 tls1.3", "aes-128-gcm aes-256-gcm chacha20-poly1305"),
        (
            "ssl_protocols TLSv1.3; proxy_ssl_protocols TLSv1.2;",
            "tls1.2",
            "aes-128-gcm aes-256-gcm chacha20-poly1305",
        ),
        (
            "proxy_ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256;",
            "tls1.2 tls1.3",
            "aes-256-gcm aes-128-gcm",
        ),
    ] {
        let words = format!("{words} location / {{ proxy_pass https://a.example; }}");
        let made = imported(&server(&words));
        let config = made.config().unwrap_or_else(|found| panic!("{words}\n{}", shown(&found)));
        let tls = config.backends[0].tls.as_ref().unwrap();
        let said: Vec<&str> = tls.versions.iter().map(|it| it.as_str()).collect();
        assert_eq!(said.join(" "), versions, "{}", made.toml);
        let said: Vec<&str> = tls.suites.iter().map(|it| it.as_str()).collect();
        assert_eq!(said.join(" "), suites, "{}", made.toml);
    }
    let wrong = "location / {\nproxy_pass https://a;\nproxy_ssl_protocols TLSv1;\n}";
    let found = from(&server(wrong)).unwrap_err();
    assert!(shown(&found).contains("write proxy_ssl_protocols"), "{}", shown(&found));
}

/// A list of certificates that were revoked, and files that decide what is passed on.
#[test]
fn what_guards_a_backend_is_not_lost() {
    let list = "proxy_ssl_crl c;";
    left(&[
        (
            &format!(
                "location /b/ {{ {list} proxy_ssl_verify on; proxy_pass https://a.example; }}"
            ),
            "/open/* /b/*! / =/b->301",
        ),
        (
            &format!("location /b/ {{ {list} proxy_ssl_verify on; proxy_pass http://a.example; }}"),
            "/open/* /b/*> / =/b->301",
        ),
        // nginx does not look at it then.
        (
            &format!("location /b/ {{ {list} proxy_pass https://a.example; }}"),
            "/open/* /b/*> / =/b->301",
        ),
        ("location /b/ { try_files $uri @x; proxy_pass http://a; }", "/open/* /b/*! / =/b->301"),
        (
            "location /b/ { more_set_input_headers x; proxy_pass http://a; }",
            "/open/* /b/*! / =/b->301",
        ),
        (
            "location /b/ { proxy_set_header Host $inside; proxy_pass http://a; }",
            "/open/* /b/*! / =/b->301",
        ),
        (
            "location /b/ { proxy_set_header Host $host_of_it; proxy_pass http://a; }",
            "/open/* /b/*! / =/b->301",
        ),
        (
            "location /b/ { proxy_set_header Host $host:8080; proxy_pass http://a; }",
            "/open/* /b/*> / =/b->301",
        ),
        (
            "location /b/ { proxy_set_header Host $proxy_host; proxy_pass http://a; }",
            "/open/* /b/*> / =/b->301",
        ),
    ]);
    let made = imported(&format!(
        "stream {{ server {{ listen 1; proxy_ssl on; proxy_ssl_verify on; {list} \
         proxy_pass 10.0.0.1:1; }} server {{ listen 2; proxy_pass 10.0.0.1:1; }} }}"
    ));
    assert!(made.toml.contains("is left out because of `proxy_ssl_crl c`"), "{}", made.toml);
    assert_eq!(made.config().unwrap().listeners.len(), 1, "{}", made.toml);
}

/// The text of two locations that ask one upstream, and whether its limit is told to hold for each of two backends.
#[test]
fn a_limit_of_an_upstream_that_is_asked_in_two_ways_is_told() {
    for (one, other, is_told) in [
        ("", "", false),
        ("", "proxy_connect_timeout 5s;", true),
        ("proxy_connect_timeout 5s;", "proxy_connect_timeout 5s;", false),
    ] {
        let words = format!(
            "location /a/ {{ {one} proxy_pass http://app; }} \
             location /b/ {{ {other} proxy_pass http://app; }}"
        );
        let upstream = "http { upstream app { server 10.0.0.1 max_conns=5; }";
        let made = imported(&server(&words).replacen("http {", upstream, 1));
        let told = made.toml.contains("`max_conns=5` holds for each of several backends");
        assert_eq!(told, is_told, "{words}\n{}", made.toml);
    }
}

#[test]
fn an_upstream_that_is_asked_in_two_ways_is_two_backends() {
    let plain = "server { listen 5432; proxy_pass db; }";
    let secured = "server { listen 5433; proxy_pass db; proxy_ssl on; proxy_protocol on; }";
    for servers in [[plain, secured], [secured, plain]] {
        let text =
            format!("stream {{ upstream db {{ server 10.0.0.1:5; }} {} }}", servers.concat());
        let made = imported(&text);
        let mut backends = made.config().unwrap().backends;
        backends.sort_by(|one, other| one.name.value.cmp(&other.name.value));
        let known = backends
            .iter()
            .map(|it| (&*it.name.value, it.tls.is_some(), it.send_proxy != SendProxy::Off));
        let expected = [("db", false, false), ("db-tls-proxy", true, true)];
        assert_eq!(known.collect::<Vec<_>>(), expected, "{}", made.toml);
        for name in expected.map(|(name, ..)| name) {
            assert!(made.toml.contains(&format!("backend = \"{name}\"")), "{}", made.toml);
        }
    }
}

#[test]
fn an_upstream_that_is_trusted_in_two_ways_is_two_backends() {
    let asks =
        |roots: &str| format!("proxy_pass https://up; proxy_ssl_trusted_certificate {roots};");
    let text = |first: &str, second: &str| {
        server(&format!("location /a/ {{ {} }} location /b/ {{ {} }}", asks(first), asks(second)))
    };
    let with_upstream =
        |server: String| server.replacen("http {", "http { upstream up { server 10.0.0.1:5; }", 1);
    // However late in their words they differ.
    let [one, two] = ["one", "two"].map(|it| format!("/etc/nginx/trusted-authorities/{it}.pem"));
    for (second, expected) in [(&one, vec!["up-tls"]), (&two, vec!["up-tls", "up-tls-2"])] {
        let backends = config(&with_upstream(text(&one, second))).backends;
        let names: Vec<&str> = backends.iter().map(|it| it.name.value.as_str()).collect();
        assert_eq!(names, expected);
    }
}

#[test]
fn clients_come_back_by_the_cookie_that_nginx_names() {
    for (words, settings, told) in [
        (
            "sticky cookie id;",
            &[
                "balance = \"cookie\"",
                "name = \"id\"",
                "name = \"10.0.0.1:1\"",
                "name = \"server-2\"",
            ][..],
            None,
        ),
        (
            "sticky cookie id expires=1h path=/a httponly secure samesite=Strict; least_conn;",
            &["max_age = \"3600s\"", "path = \"/a\"", "secure = true", "same_site = \"strict\""],
            None,
        ),
        ("sticky cookie id expires=max;", &["max_age = \"31536000s\""], None),
        ("sticky cookie id domain=.a.example;", &["name = \"id\""], Some("`domain=.a.example`")),
        ("sticky cookie id samesite=$x;", &["name = \"id\""], Some("`samesite=$x`")),
        ("sticky route $x;", &["balance = \"round-robin\""], Some("`sticky route $x`")),
        ("sticky learn create=$x;", &["balance = \"round-robin\""], Some("`sticky learn")),
    ] {
        let text = server("location / { proxy_pass http://app; }");
        let upstream =
            format!("http {{ upstream app {{ server 10.0.0.1:1; server unix:/a/b; {words} }}");
        let made = imported(&text.replacen("http {", &upstream, 1));
        let config = made.config().unwrap();
        assert_eq!(
            config.backends[0].cookie.is_some(),
            told.is_none_or(|it| !it.starts_with("`sticky"))
        );
        for setting in settings {
            assert!(made.toml.contains(setting), "{words}: {setting}\n{}", made.toml);
        }
        let is_told = made.toml.contains("is not carried over");
        assert_eq!(is_told, told.is_some(), "{words}\n{}", made.toml);
        assert!(made.toml.contains(told.unwrap_or_default()), "{words}\n{}", made.toml);
    }
}
