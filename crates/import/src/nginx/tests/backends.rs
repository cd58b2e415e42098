//! Backends: none answers for another, and none is asked for what nginx would not ask it for.

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
