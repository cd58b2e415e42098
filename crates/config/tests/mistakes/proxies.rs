//! Routes that pass requests to a backend.

#[test]
fn routes_have_files_or_a_backend() {
    for (route, settings, expected) in [
        ("backend = \"app\"\n", "", "nothing"),
        (
            "backend = \"app\"\nwebsocket = true\ntimeout = \"1s\"\nbackend_host = \"b\"\n\
             request_headers = { X-A = \"1\" }\nrequest_body = \"1 MiB\"\n\
             request_buffering = \"all\"\ndeny = [\"10.0.0.0/8\"]\nheaders = { X-B = \"1\" }\n",
            "",
            "nothing",
        ),
        ("backend = \"ap\"\n", "", "kettle.toml:5:11: no [[backend]] is named \"ap\""),
        (
            "backend = \"app\"\nroot = \"/srv\"\n",
            "",
            "kettle.toml:6:8: `root` is about files, and the route has a backend",
        ),
        (
            "backend = \"app\"\nlisting = true\n",
            "",
            "kettle.toml:6:11: `listing` is about files, and the route has a backend",
        ),
        (
            "root = \"/srv\"\ntimeout = \"1s\"\n",
            "",
            "kettle.toml:6:11: `timeout` is about requests to a backend, and the route has none",
        ),
        (
            "root = \"/srv\"\nrequest_buffering = \"off\"\n",
            "",
            "kettle.toml:6:21: `request_buffering` is about requests to a backend, and the route has none",
        ),
        (
            "backend = \"app\"\nrequest_buffering = \"on\"\n",
            "",
            "kettle.toml:6:21: `request_buffering` takes one of \"unknown-length\", \"all\", \"off\", \"refuse\"",
        ),
        (
            "backend = \"app\"\nrequest_headers = { X-Forwarded-Proto = \"http\", Proxying = \"1\" }\n",
            "",
            "nothing",
        ),
        (
            "backend = \"app\"\nrequest_headers = { Host = \"b\" }\n",
            "",
            "kettle.toml:6:28: `Host` is written by kettle for each connection to a server",
        ),
        (
            "backend = \"app\"\nrequest_headers = { TE = \"trailers\" }\n",
            "",
            "kettle.toml:6:26: `TE` is written by kettle for each connection to a server",
        ),
        (
            "backend = \"app\"\nrequest_headers = { Proxy-Authorization = \"x\" }\n",
            "",
            "kettle.toml:6:43: `Proxy-Authorization` is written by kettle for each connection to a server",
        ),
        (
            "backend = \"app\"\n",
            "send_proxy = \"v2\"\n",
            "kettle.toml:8:14: a PROXY header names one client, and routes pass the requests of many to one \
             connection; servers find the client in `Forwarded` and `X-Forwarded-For`",
        ),
        (
            "backend = \"app\"\n",
            "tls = { name = \"a\", alpn = [\"h2\"] }\n",
            "kettle.toml:8:28: routes pass requests in HTTP/1.1, and the server may agree on \"h2\"",
        ),
    ] {
        assert_eq!(first(route, settings), expected, "{route}{settings}");
    }
}

#[test]
fn what_is_about_a_fallback_stands_beside_one() {
    for (route, settings, expected) in [
        (
            "backend = \"app\"\nfallback_for_folders = false\n",
            "",
            "kettle.toml:6:24: `fallback_for_folders` is about files, and the route has a backend",
        ),
        (
            "backend = \"app\"\nfallback_except = [\"*.js\"]\n",
            "",
            "kettle.toml:6:19: `fallback_except` is about files, and the route has a backend",
        ),
        (
            "root = \"/srv\"\nfallback_except = [\"*.js\"]\n",
            "",
            "kettle.toml:6:19: `fallback_except` is about `fallback`, and the route has none",
        ),
        (
            "root = \"/srv\"\nfallback_for_folders = false\n",
            "",
            "kettle.toml:6:24: `fallback_for_folders` is about `fallback`, and the route has none",
        ),
        (
            "root = \"/srv\"\nfallback = \"/a\"\nfallback_for_folders = false\nfallback_except = [\"*.js\"]\n",
            "",
            "nothing",
        ),
    ] {
        assert_eq!(first(route, settings), expected, "{route}{settings}");
    }
}

#[test]
fn a_backend_is_asked_for_prefixes_that_all_read_alike() {
    for (route, expected) in [
        (
            "backend = \"app\"\nprefix = \"/a;b\"\n",
            "kettle.toml:6:10: servers may read a path with `;` in another way, so a backend gets no request for it",
        ),
        ("root = \"/srv\"\nprefix = \"/a;b\"\n", "nothing"),
    ] {
        assert_eq!(first(route, ""), expected, "{route}");
    }
}

/// The first line of what is said of a route and the settings of its backend.
fn first(route: &str, settings: &str) -> String {
    let site = "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\n";
    let backend = format!(
        "[[backend]]\nname = \"app\"\n{settings}[[backend.server]]\naddress = \"127.0.0.1:80\"\n"
    );
    let shown = crate::shown(&format!("{site}{route}{backend}"));
    shown.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn responses_differ_by_what_servers_see() {
    for (name, expected) in [
        ("accept-language", "nothing"),
        (
            "X-Forwarded-Proto",
            "kettle.toml:5:14: no server sees the `X-Forwarded-Proto` of a client, so no response differs by it",
        ),
        (
            "Host",
            "kettle.toml:5:14: no server sees the `Host` of a client, so no response differs by it",
        ),
        (
            "Connection",
            "kettle.toml:5:14: no server sees the `Connection` of a client, so no response differs by it",
        ),
        (
            "x_user",
            "kettle.toml:5:14: no server sees the `x_user` of a client, so no response differs by it",
        ),
        (
            "X.User",
            "kettle.toml:5:14: no server sees the `X.User` of a client, so no response differs by it",
        ),
        (
            "Client-Cert",
            "kettle.toml:5:14: no server sees the `Client-Cert` of a client, so no response differs by it",
        ),
        ("CF-Connecting-IP", "nothing"),
        (
            "If-None-Match",
            "kettle.toml:5:14: `If-None-Match` is answered from what is kept, which is always the whole",
        ),
    ] {
        let shown = crate::shown(&format!(
            "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\n\
             cache.vary = [\"{name}\"]\ncache.store = \"main\"\nbackend = \"app\"\n\
             [[backend]]\nname = \"app\"\n[[backend.server]]\naddress = \"127.0.0.1:80\"\n\
             [[cache]]\nname = \"main\"\ndirectory = \"/srv\"\n"
        ));
        assert_eq!(shown.lines().next().unwrap_or_default(), expected, "{name}");
    }
}

#[test]
fn servers_are_sent_one_name() {
    for (host, expected) in [
        ("b.example", "nothing"),
        ("2001:db8::1", "nothing"),
        ("b.example:8080", "nothing"),
        ("{host}", "nothing"),
        ("{host}:{port}", "nothing"),
        ("*.a.example", "a request is for one name"),
        ("*", "a request is for one name"),
        ("_", "a request is for one name"),
        ("b.example:0", "behind the host stand a colon and a port from 1 to 65535"),
        ("{hots}", "the words that stand here are {host} and {host}:{port}"),
        ("{client_ip}", "the words that stand here are {host} and {host}:{port}"),
    ] {
        let takes = "kettle.toml:6:16: `backend_host` takes a host name, with or without a port: ";
        let expected = match expected {
            "nothing" => expected.to_owned(),
            why => format!("{takes}{why}"),
        };
        let text = format!(
            "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nbackend = \"app\"\n\
             backend_host = \"{host}\"\n[[backend]]\nname = \"app\"\n[[backend.server]]\n\
             address = \"127.0.0.1:80\"\n"
        );
        let shown = crate::shown(&text);
        assert_eq!(shown.lines().next(), Some(&*expected), "{host}");
    }
}

/// Returns what is shown of a route with these request headers, with a store or without.
fn with_headers(headers: &str, has_cache: bool) -> String {
    let cache = if has_cache { "cache.store = \"main\"\n" } else { "" };
    let shown = crate::shown(&format!(
        "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\n\
         request_headers = {{ {headers} }}\nbackend = \"app\"\n{cache}\
         [[backend]]\nname = \"app\"\n[[backend.server]]\naddress = \"127.0.0.1:80\"\n\
         [[cache]]\nname = \"main\"\ndirectory = \"/srv\"\n"
    ));
    // Without the lines of the file.
    let lines: Vec<_> = shown.lines().collect();
    match lines.as_slice() {
        [first, .., help] if help.starts_with("help") => format!("{first}\n{help}"),
        _ => shown,
    }
}

#[test]
fn words_are_filled_in_by_requests() {
    for (headers, expected) in [
        ("X-A = \"{client_ip}:{client_port}\", X-B = [\"{client_cert}\", \"{uri}\"]", "nothing"),
        ("X-A = [], X-B = \"{{}\"", "nothing"),
        (
            "X-A = \"{client_iq}\"",
            "kettle.toml:5:27: `X-A` takes a header value: {client_iq} is none of {client_ip}, {client_port}, \
             {scheme}, {host}, {port}, {uri}, {asked_uri}, {path}, {asked_path}, {query}, {method}, {protocol}, {request_id}, {client_subject}, {client_cert}, {client_cert_chain}, {status}, {header:…}, {cookie:…}, {query:…}, {map:…}, {name:…}, {answer:…}, {auth:…}\n\
             help: write \"{client_ip}\"",
        ),
        (
            "X-A = [\"1\", \"{x}\"]",
            "kettle.toml:5:33: `X-A` takes a header value: {x} is none of {client_ip}, {client_port}, {scheme}, \
             {host}, {port}, {uri}, {asked_uri}, {path}, {asked_path}, {query}, {method}, {protocol}, {request_id}, {client_subject}, {client_cert}, {client_cert_chain}, {status}, {header:…}, {cookie:…}, {query:…}, {map:…}, {name:…}, {answer:…}, {auth:…}\n\
             help: write `{{` for a brace itself",
        ),
        (
            "X-A = \"a{\"",
            "kettle.toml:5:27: `X-A` takes a header value: a brace is not closed\n\
             help: write `{{` for a brace itself",
        ),
    ] {
        assert_eq!(with_headers(headers, false), expected, "{headers}");
    }
}

#[test]
fn what_is_kept_says_nothing_of_one_client() {
    for word in ["scheme", "host", "uri"] {
        assert_eq!(with_headers(&format!("X-A = \"{{{word}}}\""), true), "nothing", "{word}");
    }
    for word in
        ["client_ip", "client_port", "port", "client_subject", "client_cert", "client_cert_chain"]
    {
        let expected = format!(
            "kettle.toml:5:38: {{{word}}} is one client's, and the responses of this route are kept for all\n\
             help: write {{scheme}}, {{host}} or {{uri}}, or move it to a route without `cache`"
        );
        let headers = format!("X-A = \"1\", X-B = \"{{host}}{{{word}}}\"");
        assert_eq!(with_headers(&headers, true), expected);
        assert_eq!(with_headers(&headers, false), "nothing");
    }
}

#[test]
fn only_what_reads_requests_believes_who_they_are_for() {
    for (listener, expected) in [
        ("trusted_proxies = [\"10.0.0.0/8\"]\nclient_ip_header = \"CF-Connecting-IP\"", "nothing"),
        ("kind = \"redirect\"\ntrusted_proxies = [\"10.0.0.0/8\"]", "nothing"),
        (
            "client_ip_header = \"X-Real-IP\"",
            "kettle.toml:3:20: nobody is believed here, so this header is never read",
        ),
        (
            "kind = \"tcp\"\nbackend = \"app\"\ntrusted_proxies = [\"10.0.0.0/8\"]",
            "kettle.toml:5:19: `trusted_proxies` is about requests, and kind = \"tcp\" reads none",
        ),
        (
            "trusted_proxies = [\"10.0.0.0/8\"]\nclient_ip_header = \"Host\"",
            "kettle.toml:4:20: `client_ip_header` takes the name of a header that has an address: \
             that one is about the message or the connection",
        ),
        (
            "trusted_proxies = [\"10.0.0.0/8\"]\nclient_ip_header = \"X_Client\"",
            "kettle.toml:4:20: `client_ip_header` takes the name of a header that has an address: \
             it has only letters, digits and `-`",
        ),
    ] {
        let shown = crate::shown(&format!(
            "[[listener]]\naddress = \"0.0.0.0:443\"\n{listener}\n\
             [[backend]]\nname = \"app\"\n[[backend.server]]\naddress = \"127.0.0.1:80\"\n"
        ));
        assert_eq!(shown.lines().next(), Some(expected), "{listener}");
    }
}

fn with_tls(tls: &str) -> String {
    crate::shown(&format!(
        "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nbackend = \"app\"\n\
         [[backend]]\nname = \"app\"\ntls = {{ {tls} }}\n[[backend.server]]\naddress = \"app.example:443\"\n"
    ))
}

#[test]
fn routes_have_no_dialogue_before_tls() {
    for (starttls, is_refused) in [("off", false), ("smtp", true)] {
        let shown = with_tls(&format!("starttls = \"{starttls}\""));
        assert_eq!(shown.contains("which has no such dialogue"), is_refused, "{shown}");
    }
}

#[test]
fn where_keys_are_pinned_no_authority_is_asked() {
    let pins = format!("pins = [\"sha256/{}=\"]", "A".repeat(43));
    for (roots, is_refused) in [("", false), (", roots = \"system\"", true)] {
        let shown = with_tls(&format!("{pins}{roots}"));
        assert_eq!(shown.contains("with `pins` no authority is asked"), is_refused, "{shown}");
    }
}
