//! `map` as `[[map]]`, and where its words stand.

use super::shown::routes;
use super::*;

#[test]
fn maps_that_are_asked_are_carried_over() {
    let maps = "map $http_origin $cors { default ''; \"https://A.example\" $http_origin; ~^https://(?<n>[a-z]+)\\.b$ $n-$1; }
         map $uri $unused { default 1; }
         map $cors$arg_x $both { volatile; hostnames; default no; '' \"none {\"; *.c.example yes; ~*bot ''; \\default d; }
         map $upstream_addr $lost { default 1; }";
    let words = "root /srv; add_header A $cors; add_header B ${both}x always; add_header C $lost;
                 if ($both = yes) { return 403; }";
    let text = server(words).replace("http {", &format!("http {{ {maps}"));
    let made = imported(&text);
    let config = made.config().unwrap_or_else(|found| panic!("{}\n{}", shown(&found), made.toml));
    let names: Vec<&str> = config.maps.iter().map(|map| map.name.value.as_str()).collect();
    assert_eq!(names, ["cors", "both"], "{}", made.toml);
    for line in [
        "of = \"{header:origin}\"",
        "values = { \"https://a.example\" = \"{header:origin}\" }",
        "\"^https://(?<n>[a-z]+)\\\\.b$\" = \"{n}-{1}\"",
        "of = \"{map:cors}{query:x}\"",
        "values = { \"\" = \"none {{\", \"*.c.example\" = \"yes\", \"default\" = \"d\" }",
        "hostnames = true",
        "default = \"no\"",
        "\"(?i)bot\" = \"\"",
        "when = [{ of = \"{map:both}\", text = \"yes\" }]",
        "headers = { \"A\" = \"{map:cors}\", \"B\" = \"{map:both}x\" }",
        "`add_header C $lost` is not carried over",
        "`map $upstream_addr $lost` is not carried over",
    ] {
        assert!(made.toml.contains(line), "{line}\n{}", made.toml);
    }
}

/// The entries that a map leaves out and what closes then, by its text.
#[test]
fn a_map_that_cannot_be_said_is_none() {
    for (map, is_said) in [
        ("$host $x { a 1; }", true),
        ("$upstream_status $x { a 1; }", false),
        ("$host $x { a $upstream_status; }", false),
        ("$host $x { ~(?=a) 1; }", false),
        ("$x $x { a 1; }", false),
        ("$host $x { ~^(a) $2$1; }", true),
    ] {
        let text = server("root /srv; location /a/ { if ($x) { return 403; } }");
        let made = imported(&text.replace("http {", &format!("http {{ map {map}")));
        assert_eq!(made.toml.contains("{map:x}"), is_said, "{map}\n{}", made.toml);
        assert_eq!(made.toml.contains("answers 403 because"), !is_said, "{map}\n{}", made.toml);
        assert!(made.config().is_ok(), "{map}\n{}", made.toml);
    }
}

/// Fields that servers are sent, and what is written for them.
#[test]
fn variables_that_nginx_has_by_itself_are_maps() {
    for (field, expected, map) in [
        (
            "X-Forwarded-For $proxy_add_x_forwarded_for",
            "\"X-Forwarded-For\" = \"{map:proxy_add_x_forwarded_for}\"",
            "values = { \"\" = \"{client_ip}\" }\ndefault = \"{header:x-forwarded-for}, {client_ip}\"",
        ),
        ("X-Forwarded-For $remote_addr", "", ""),
        ("X-Forwarded-Proto $scheme", "", ""),
        ("X-Forwarded-Proto https", "\"X-Forwarded-Proto\" = \"https\"", ""),
        ("X-A $https", "\"X-A\" = \"{map:https}\"", "values = { \"https\" = \"on\" }"),
        ("X-A $uri$is_args$args", "\"X-A\" = \"{path}{map:is_args}{query}\"", "default = \"?\""),
        (
            "X-A $ssl_client_verify",
            "\"X-A\" = \"{map:ssl_client_verify}\"",
            "of = \"{client_cert}\"\nvalues = { \"\" = \"NONE\" }",
        ),
    ] {
        let words = format!("location / {{ proxy_set_header {field}; proxy_pass http://a; }}");
        let made = imported(&server(&words));
        assert!(made.toml.contains(expected) && made.toml.contains(map), "{field}\n{}", made.toml);
        assert_eq!(made.toml.contains("[[map]]"), !map.is_empty(), "{field}\n{}", made.toml);
        let name = field.split(' ').next().unwrap();
        assert_eq!(made.toml.contains(name), !expected.is_empty(), "{field}\n{}", made.toml);
        assert!(made.config().is_ok(), "{field}\n{}", made.toml);
    }
}

/// The variables that a server or a location sets by conditions, and the routes of `/` that follow.
#[test]
fn what_is_set_by_conditions_goes_along_with_them() {
    let map = "map $host $pool { default blue; a.example green; b.example green; c.example ''; }";
    for (words, expected) in [
        // Maintenance.
        (
            "set $m 0; if ($arg_x) { set $m 1; } if ($remote_addr = 10.0.0.1) { set $m 0; } if ($m = 1) { return 503; }",
            "|{3}:503 /",
        ),
        ("set $m 0; if ($http_a = x) { set $m 1; } if ($m = 0) { return 403; }", "|{1}:403 /"),
        ("set $m 0; if ($http_a = x) { set $m 1; }", "/"),
        (
            "set $m a; if ($http_a = x) { set $m b; } location /p/ { add_header X $m; }",
            "/p/*{1} /p/* /",
        ),
        ("set $m a; if ($http_a = x) { set $m b; } location /p/ { }", "/p/* /"),
        // Two that are to be said together.
        (
            "set $c ''; if ($http_a) { set $c a; } if ($request_method = POST) { set $c ${c}p; } if ($c = ap) { return 204; }",
            "|{3}:204 /",
        ),
        ("location / { proxy_pass http://$pool; }", "/{1}:500 /{1}> />"),
        ("location / { proxy_pass http://$pool$request_uri; }", "/{1}:500 /{1}> />"),
        (
            "location / { set $b blue; if ($http_a) { set $b green; } proxy_pass http://$b; }",
            "/{2}> />",
        ),
        // Groups of the host.
        (
            "server_name www.a.example a.example www.b.example; if ($host ~* ^www\\.(.*)$) { return 301 https://$1$request_uri; }",
            "|{1}->301 |{1}->301 /",
        ),
        (
            "server_name www.a.example; if ($host ~* www\\.(.*)) { set $h $1; rewrite ^(.*)$ http://$h$1 permanent; }",
            "|{1}->301 /",
        ),
        (
            "server_name www.a.example a.example; set $h -; if ($host ~ ^www\\.(.*)$) { set $h $1; } add_header X $h;",
            "/{1} /",
        ),
        ("set $m 1; if ($m) { return 503; }", "|:503 /"),
    ] {
        let text = server(&format!("root /srv; {words}"));
        let made = imported(&text.replace("http {", &format!("http {{ {map}")));
        let config = made.config();
        let config = config.unwrap_or_else(|found| panic!("{}\n{}", shown(&found), made.toml));
        assert_eq!(routes(&config), expected, "{words}\n{}", made.toml);
    }
}

#[test]
fn a_redirect_to_a_part_of_the_host_names_it() {
    let words = "root /srv; server_name www.a.example; if ($host ~* ^www\\.(.*)$) { return 301 https://$1$request_uri; }";
    let made = imported(&server(words));
    let line = "when = [{ host = [\"www.a.example\"] }]\nredirect = [{ to = \"https://a.example{path}\", status = 301 }]";
    assert!(made.toml.contains(line), "{}", made.toml);
}
