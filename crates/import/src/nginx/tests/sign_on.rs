//! `auth_request`: who is asked, and what closes its place.

use super::*;

/// The table of the first route that asks a service, in a server with these directives.
fn asked(words: &str) -> Option<kettle_config::ForwardAuth> {
    let config = config(&server(words));
    config.sites[0].routes.iter().find_map(|it| it.forward_auth.clone())
}

const APP: &str = "location / { auth_request /auth; proxy_pass http://10.0.0.1; }";

#[test]
fn what_a_service_says_is_copied_where_a_server_is_told_just_that() {
    let set = "auth_request_set $user $upstream_http_x_user; auth_request_set $mail $upstream_http_x_mail; \
        auth_request_set $state $upstream_status;";
    for (headers, copy) in [
        ("proxy_set_header X-User $user;", &["x-user"][..]),
        (
            "proxy_set_header X-Name ${user}; proxy_set_header X-Mail $mail;",
            &["x-user>X-Name", "x-mail"],
        ),
        ("proxy_set_header X-Name \"user $user\";", &[]),
        ("proxy_set_header X-Name $state;", &[]),
        ("proxy_set_header X-Name $mail; proxy_set_header X-Name fixed;", &[]),
        ("proxy_set_header Host $user;", &[]),
        ("proxy_set_header X-Forwarded-For $user;", &[]),
    ] {
        let app = format!(
            "location / {{ auth_request /auth; {set} {headers} proxy_pass http://10.0.0.1; }}"
        );
        let text = format!("location = /auth {{ proxy_pass http://10.0.0.2; }} {app}");
        let closed = headers.contains("Host");
        match asked(&text) {
            Some(found) => assert_eq!(found.copy, copy, "{headers}"),
            None => assert!(closed, "{headers}"),
        }
        // No client says it in the service's place.
        let config = config(&server(&text));
        for route in config.sites[0].routes.iter().filter(|it| it.forward_auth.is_some()) {
            let auth = route.forward_auth.as_ref().unwrap();
            let is_ours = |name: &str| {
                auth.copied().any(|(_, it)| it.eq_ignore_ascii_case(name))
                    || route.request_headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name))
            };
            assert!(is_ours("x-name") || !headers.contains("X-Name"), "{headers}");
        }
    }
}

#[test]
fn an_internal_location_of_a_service_answers_nobody_and_is_no_loss() {
    let own = "location = /auth { internal; proxy_pass_request_body off; proxy_set_header Content-Length \"\"; proxy_pass http://10.0.0.2; }";
    let config = config(&server(&format!("{own} {APP}")));
    let route = config.sites[0].routes.iter().find(|it| it.exact.as_deref() == Some("/auth"));
    let route = route.unwrap();
    assert!(route.internal && route.backend.is_none() && route.deny.is_empty());
}

#[test]
fn a_file_is_behind_the_service_too_and_a_text_is_not() {
    let text = "location = /auth { proxy_pass http://10.0.0.2; } auth_request /auth; root /srv; \
        location /text { return 200 a; } location /open/ { auth_request off; }";
    let config = config(&server(text));
    for route in &config.sites[0].routes {
        let is_asked =
            route.root.is_some() && route.place().is_some_and(|it| it.text() != "/open/");
        assert_eq!(
            route.forward_auth.is_some(),
            is_asked || route.exact.as_deref() == Some("/auth"),
            "{route:?}"
        );
    }
}
