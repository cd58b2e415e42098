//! What decides who is served, and where clients are sent instead.

use super::*;

/// What keeps somebody out in nginx, and the routes that are left of `/` and `/open/`: open ones by their prefix, guarded ones
/// with a `?`, closed ones with a `!`. Below `/there` lies a file.
#[test]
fn nothing_becomes_looser() {
    for (words, expected) in [
        ("", "/ /open"),
        ("allow all;", "/ /open"),
        ("deny all;", ""),
        ("allow 10.0.0.0/8; deny all;", "/? /open?"),
        ("allow all; deny 1.2.3.4;", "/ /open"),
        ("deny 1.2.3.4;", "/? /open?"),
        ("deny host.example;", ""),
        ("set_real_ip_from 10.0.0.1; deny 1.2.3.4;", ""),
        ("listen 444 ssl proxy_protocol; deny 1.2.3.4;", ""),
        ("set_real_ip_from 10.0.0.1; real_ip_header proxy_protocol; deny 1.2.3.4;", "/? /open?"),
        ("auth_basic x;", ""),
        ("auth_basic x; auth_basic_user_file users;", "/? /open?"),
        ("auth_basic x; auth_basic_user_file weak;", ""),
        ("auth_basic $x; auth_basic_user_file users;", ""),
        ("auth_basic x; auth_basic_user_file /$host;", ""),
        ("auth_basic off; auth_basic_user_file users;", "/ /open"),
        ("auth_basic x; auth_basic_user_file users; deny 1.2.3.4; satisfy any;", ""),
        ("auth_request /auth;", ""),
        ("satisfy any;", "/ /open"),
        ("access_by_lua_block { if x then { } end }", ""),
        ("modsecurity on;", ""),
        ("secure_link $arg_md5;", ""),
        ("return 403;", ""),
        ("return 301 $elsewhere;", ""),
        ("if ($bad) { return 444; }", ""),
        ("if ($request_method !~ ^GET$) { return 405; }", "/ /open"),
        ("if ($slow) { rewrite ^ /x; }", "/ /open"),
        ("rewrite ^/(a|b)$ /c;", ""),
        ("rewrite ^/open/(.*)$ /there/$1;", ""),
        ("location /there/ { deny all; }", "/ /open /there!"),
        ("location /there { internal; }", "/ /open /there!"),
        ("location /the { auth_basic x; }", ""),
        ("location /nothing/ { deny all; }", "/ /nothing! /open"),
        ("location /nothing/ { proxy_pass http://a; }", "/ /nothing! /open"),
        ("location /x/ { return 301 /x/y; }", "/ /open /x!"),
        ("location /x/ { return 301 /x$1; }", "/ /open /x!"),
        ("location /x/ { rewrite ^/x/(\\d+) /x/y break; }", "/ /open /x!"),
        ("location /x/ { rewrite ^/x/a /there/key break; alias /b; }", "/ /open /x!"),
        ("location = /there/key { deny all; }", "/ /open /there/key!"),
        ("location = /there/key { internal; }", "/ /open /there/key!"),
        ("location = /there/key { deny 1.2.3.4; }", "/ /open /there/key!"),
        ("location = /there { deny all; }", "/ /open"),
        ("location = /open { deny all; }", "/ /open"),
        ("location = /there/ { deny all; }", ""),
        ("location = /other { return 404; }", "/ /open /other!"),
        ("location ~ \\.php$ { fastcgi_pass a; }", ""),
        ("location ~ ^/x { auth_basic x; }", ""),
        ("location ~ \\.x$ { deny 1.2.3.4; }", ""),
        ("location ~ \\.x$ { auth_basic x; auth_basic_user_file users; }", ""),
        ("location ~* \\.php$ { deny all; }", ""),
        ("location ~ /\\. { deny all; }", "/ /open"),
        ("location ~ \\.css$ { expires 1h; }", "/ /open"),
        ("location /there { } location /there/ { deny all; }", "/ /open /there!"),
        ("location /x/ { limit_except GET { deny all; } }", "/ /open"),
        ("location /there/ { limit_except POST { deny all; } }", "/ /open /there!"),
        ("location /there/ { root $document_root; }", ""),
    ] {
        let text = server(&format!("root /srv; location /open/ {{ expires 1h; }} {words}"));
        let made = beside_users(&text);
        let found = made.config().map(|config| routes(&config)).unwrap_or_default();
        assert_eq!(found, expected, "{words}\n{}", made.toml);
        let is_same = expected == "/ /open" || expected.contains('?');
        assert!(is_same || !made.warnings.is_empty(), "{words}");
    }
}

/// Made beside a file below `/srv/there`, and one with users.
fn beside_users(text: &str) -> Imported {
    let mut machine = Files::with("/etc/nginx/nginx.conf", text);
    for (path, text) in [
        ("/srv/there/key", ""),
        ("/etc/nginx/users", "# all\nann:$2y$05$abc\nbob:$argon2id$x:Bob\n"),
        ("/etc/nginx/weak", "ann:$2y$05$abc\nbob:$apr1$x$y\n"),
    ] {
        machine.0.insert(path.into(), text.to_owned());
    }
    let made = import_file(Path::new("/etc/nginx/nginx.conf"), &machine);
    made.unwrap_or_else(|findings| panic!("{text}: {}", shown(&findings)))
}

fn routes(config: &Config) -> String {
    let shown = |route: &kettle_config::Route| {
        let is_guarded =
            !route.deny.is_empty() || !route.allow.is_empty() || route.basic_auth.is_some();
        let mark = match (route.root.is_some(), is_guarded) {
            (false, true) => "!",
            (_, true) => "?",
            (_, false) => "",
        };
        format!("{}{mark}", route.prefix)
    };
    let all = config.sites.iter().flat_map(|site| &site.routes);
    let mut all: Vec<String> = all.map(shown).collect();
    all.sort();
    all.join(" ")
}

/// What a server says, with what stands in the text of its routes then; or in its comments.
#[test]
fn guards_redirects_and_limits_become_those_of_routes() {
    for (words, expected) in [
        ("allow 10.1.2.3/8; deny all;", "allow = [\"10.0.0.0/8\"]\nsymlinks"),
        (
            "deny 10.1.0.0/16; allow 10.0.0.0/8; deny all;",
            "allow = [\"10.0.0.0/8\"]\ndeny = [\"10.1.0.0/16\"]",
        ),
        ("allow 10.0.0.0/8; deny 10.1.0.0/16; deny all;", "allow = [\"10.0.0.0/8\"]\nsymlinks"),
        ("deny 10.0.0.1;", "allow = [\"0.0.0.0/0\", \"::/0\"]\ndeny = [\"10.0.0.1/32\"]"),
        ("allow unix:; allow 127.0.0.1; deny all;", "allow = [\"127.0.0.1/32\"]\n"),
        ("deny 0.0.0.0/0; allow ::1;", "allow = [\"::1/128\", \"::/0\"]\ndeny = [\"0.0.0.0/0\"]"),
        (
            "auth_basic \"In here\"; auth_basic_user_file users;",
            "basic_auth = { users = \"/etc/nginx/users\", realm = \"In here\" }",
        ),
        (
            "auth_basic x; auth_basic_user_file weak;",
            "the server is left out because of `auth_basic_user_file weak`; it has hashes",
        ),
        ("auth_basic x; auth_basic_user_file none;", "/etc/nginx/none could not be looked at"),
        ("limit_req zone=a;", "rate_limit = { requests = 10, period = \"1s\", burst = 1 }"),
        (
            "limit_req zone=b burst=5 nodelay;",
            "rate_limit = { requests = 30, period = \"1m\", burst = 6 }",
        ),
        ("limit_req zone=a burst=5; limit_conn c 3;", "burst = 6, concurrent = 3 }"),
        (
            "limit_conn c 3;",
            "rate_limit = { requests = 1000000, period = \"1s\", burst = 1000000, concurrent = 3 }",
        ),
        ("limit_req zone=a burst=5;", "`limit_req zone=a burst=5` delays nobody"),
        ("limit_req zone=uri;", "`limit_req zone=uri` is not carried over"),
        ("set_real_ip_from 10.0.0.1; limit_req zone=a;", "`limit_req zone=a` is not carried over"),
        (
            "location /old/ { return 301 /new/; }",
            "prefix = \"/old\"\nredirect = [{ to = \"/new/\", status = 301, keep_query = false }]",
        ),
        (
            "location = /old { return 308 https://a.example/?x=1; }",
            "redirect = [{ from = \"/old\", to = \"https://a.example/?x=1\", status = 308, keep_query = false }]",
        ),
        (
            "location ~ ^/u/(.*)$ { return 302 /v/$1$is_args$args; }",
            "redirect = [{ from = \"/u/**\", to = \"/v/{1}\", status = 302 }]",
        ),
        (
            "location ~* ^/u/(.*)$ { return 302 /v/$1; }",
            "`location ~* ^/u/(.*)$` is for other cases",
        ),
        (
            "rewrite ^/old/(.*)$ /new/$1 permanent;",
            "redirect = [{ from = \"/old/**\", to = \"/new/{1}\", status = 301 }]",
        ),
        (
            "rewrite ^/old/(.+)$ /new/$1 permanent;",
            "`/old/**` is for nothing in place of a star as well",
        ),
        (
            "rewrite ^/old/(.*)$ /new/$1 last;",
            "rewrite = [{ from = \"/old/**\", to = \"/new/{1}\" }]",
        ),
        (
            "location /a/ { rewrite ^/a/x/(.*)$ /a/$1 break; }",
            "prefix = \"/a\"\nroot = \"/srv/a\"\nrewrite = [{ from = \"/a/x/**\", to = \"/a/{1}\" }]",
        ),
        (
            "location /a/ { rewrite ^/a/(.*)$ /b/$1 last; }",
            "root = \"/srv\"\nrewrite = [{ from = \"/a/**\", to = \"/b/{1}\" }]",
        ),
        (
            "return 301 https://a.example$request_uri;",
            "[[site.route]]\nredirect = [{ to = \"https://a.example{path}\", status = 301 }]",
        ),
        ("gzip on;", "compress = [\"gzip\"]"),
        (
            "add_header Access-Control-Allow-Origin https://a.example; add_header Access-Control-Allow-Methods 'GET, POST'; add_header Access-Control-Max-Age 1728000;",
            "cors = { origins = [\"https://a.example\"], methods = [\"GET\", \"POST\"], max_age = \"86400s\" }",
        ),
        (
            "add_header Access-Control-Allow-Origin $http_origin;",
            "`add_header Access-Control-Allow-Origin $http_origin` is not carried over",
        ),
        (
            "add_header Access-Control-Allow-Origin *; add_header Access-Control-Allow-Credentials true;",
            "every origin with credentials is not carried over",
        ),
        ("secure_link $arg_md5,$arg_expires;", "`signed_urls` of a route"),
        (
            "try_files $uri /x/i.html; location /x/ { expires 1h; }",
            "/x/i.html answers for nothing else",
        ),
    ] {
        let zones = "limit_req_zone $binary_remote_addr zone=a:1m rate=10r/s; limit_req_zone $remote_addr zone=b:1m \
                     rate=30r/m; limit_req_zone $uri zone=uri:1m rate=1r/s; limit_conn_zone $binary_remote_addr zone=c:1m;";
        let text =
            server(&format!("root /srv; {words}")).replace("http {", &format!("http {{ {zones}"));
        let made = beside_users(&text);
        assert!(made.toml.contains(expected), "{words}\n{}", made.toml);
        let valid = made.config().map(drop).map_err(|findings| shown(&findings));
        assert!(
            valid.is_ok() || !made.toml.contains("[[site]]"),
            "{words}\n{valid:?}\n{}",
            made.toml
        );
    }
}
