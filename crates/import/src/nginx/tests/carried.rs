//! The fate of guards, redirects, limits and backends in the text.

use super::shown::beside_users;
use super::*;

/// The text of a server, with that of its routes then; or that in its comments.
#[test]
fn guards_redirects_and_limits_become_those_of_routes() {
    let mut wrong = String::new();
    for (words, expected) in CARRIED_OVER.iter().copied() {
        let zones = "limit_req_zone $binary_remote_addr zone=a:1m rate=10r/s; limit_req_zone $remote_addr zone=b:1m \
                     rate=30r/m; limit_req_zone $uri zone=uri:1m rate=1r/s; limit_req_zone $remote_addr zone=none:1m rate=0r/s; limit_conn_zone $binary_remote_addr zone=c:1m; upstream app { least_conn; server 10.0.0.1; server 10.0.0.2:81 backup; }";
        let text =
            server(&format!("root /srv; {words}")).replace("http {", &format!("http {{ {zones}"));
        let made = beside_users(&text);
        if !made.toml.contains(expected) {
            let sites = made.toml.split("[[site]]").nth(1).unwrap_or_default();
            wrong.push_str(&format!("{words}\n  expected: {expected:?}\n{sites}\n"));
        }
        let valid = made.config().map(drop).map_err(|diagnostics| shown(&diagnostics));
        assert!(
            valid.is_ok() || !made.toml.contains("[[site]]"),
            "{words}\n{valid:?}\n{}",
            made.toml
        );
    }
    assert!(wrong.is_empty(), "{wrong}");
}

const CARRIED_OVER: &[(&str, &str)] = &[
    (
        "allow 10.1.2.3/8; deny all;",
        "allow = [\"10.0.0.0/8\"]\nmark_private = false\nanswer_options = false\nsymlinks",
    ),
    (
        "deny 10.1.0.0/16; allow 10.0.0.0/8; deny all;",
        "allow = [\"10.0.0.0/8\"]\ndeny = [\"10.1.0.0/16\"]",
    ),
    (
        "allow 10.0.0.0/8; deny 10.1.0.0/16; deny all;",
        "allow = [\"10.0.0.0/8\"]\nmark_private = false\nanswer_options = false\nsymlinks",
    ),
    ("deny 10.0.0.1;", "allow = [\"0.0.0.0/0\", \"::/0\"]\ndeny = [\"10.0.0.1/32\"]"),
    ("allow unix:; allow 127.0.0.1; deny all;", "allow = [\"127.0.0.1/32\"]\n"),
    ("deny 0.0.0.0/0; allow ::1;", "allow = [\"::1/128\", \"::/0\"]\ndeny = [\"0.0.0.0/0\"]"),
    (
        "auth_basic \"In here\"; auth_basic_user_file users;",
        "basic_auth = { users = \"/etc/nginx/users\", realm = \"In here\" }",
    ),
    (
        "auth_basic x; auth_basic_user_file weak;",
        "answers 403 because of `auth_basic_user_file weak`; it has hashes",
    ),
    ("auth_basic x; auth_basic_user_file none;", "it is not there or has no users"),
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
    // The first of several counts; no rate and no number are none.
    (
        "limit_req zone=a; limit_req zone=b;",
        "rate_limit = { requests = 10, period = \"1s\", burst = 1 }",
    ),
    ("limit_req zone=a; limit_req zone=b;", "`limit_req zone=b` is not carried over"),
    ("limit_conn c 3; limit_conn c 4;", "concurrent = 3 }"),
    ("limit_conn c 3; limit_conn c 4;", "`limit_conn c 4` is not carried over"),
    ("limit_conn c 0;", "`limit_conn c 0` is not carried over"),
    ("limit_req zone=none;", "`limit_req zone=none` is not carried over"),
    (
        "set_real_ip_from 10.0.0.1; real_ip_header Forwarded; limit_req zone=a;",
        "`limit_req zone=a` is not carried over",
    ),
    (
        "set_real_ip_from 10.0.0.1; limit_req zone=a;",
        "rate_limit = { requests = 10, period = \"1s\", burst = 1 }",
    ),
    (
        "location /old/ { return 301 /new/; }",
        "text_prefix = \"/old/\"\nredirect = [{ to = \"/new/\", status = 301, keep_query = false }]",
    ),
    (
        "location = /old { return 308 https://a.example/?x=1; }",
        "exact = \"/old\"\nredirect = [{ to = \"https://a.example/?x=1\", status = 308, keep_query = false }]",
    ),
    (
        "location ~ ^/u/(.*)$ { return 302 /v/$1$is_args$args; }",
        "regex = \"^/u/(.*)$\"\nredirect = [{ to = \"/v/{1}\", status = 302 }]",
    ),
    (
        "location ~* ^/u/(.*)$ { return 302 /v/$1; }",
        "regex = \"(?i)^/u/(.*)$\"\nredirect = [{ to = \"/v/{1}\", status = 302, keep_query = false }]",
    ),
    ("disable_symlinks on;", "symlinks = \"never\""),
    ("disable_symlinks if_not_owner;", "symlinks = \"never\""),
    ("disable_symlinks off;", "symlinks = \"follow\""),
    ("autoindex on;", "listing = true"),
    ("index a.php; location = /x/a.php { return 301 /; }", "index = [\"a.php\"]\n"),
    ("index index.php; rewrite ^/(.*)\\.php$ /$1 permanent;", "index = [\"index.php\"]\n"),
    ("index index.php; rewrite ^/(.*)\\.php$ /$1;", "index = []\n"),
    ("index index.html; rewrite ^/(.*)\\.html$ /$1 permanent;", "index = [\"index.html\"]\n"),
    (
        "rewrite ^/old/(.*)$ /new/$1 permanent;",
        "[[site.before]]\nredirect = [{ regex = \"^/old/(.*)$\", to = \"/new/{1}\", status = 301 }]",
    ),
    (
        "rewrite ^/old/(.*)$ /new/$1 last;",
        "rewrite = [{ regex = \"^/old/(.*)$\", to = \"/new/{1}\" }]",
    ),
    (
        "location /a/ { rewrite ^/a/x/(.*)$ /a/$1 break; }",
        "text_prefix = \"/a/\"\nroot = \"/srv\"\nrewrite = [{ regex = \"^/a/x/(.*)$\", to = \"/a/{1}\" }]",
    ),
    (
        "location /a/ { rewrite ^/a/(.*)$ /b/$1 last; }",
        "root = \"/srv\"\nrewrite = [{ regex = \"^/a/(.*)$\", to = \"/b/{1}\" }]",
    ),
    (
        "return 301 https://a.example$request_uri;",
        "[[site.route]]\nredirect = [{ to = \"https://a.example{path}\", status = 301 }]",
    ),
    (
        "location /b/ { proxy_pass http://127.0.0.1:3000; }",
        "text_prefix = \"/b/\"\nbackend = \"127.0.0.1:3000\"\nencoded_slashes = true\nbackend_host = \"127.0.0.1:3000\"\nrequest_headers = { \"X-Request-Id\" = \"{header:x-request-id}\" }\ntimeout = \"60s\"\nrequest_body = 1048576\nrequest_buffering = \"all\"\nresponse_buffering = true\nearly_hints = \"off\"\n",
    ),
    (
        "location /b/ { proxy_pass http://127.0.0.1:3000; }",
        "name = \"127.0.0.1:3000\"\nbalance = \"round-robin\"\nconnect_timeout = \"60s\"\nidle_timeout = \"10m\"\n\n[[backend.server]]\naddress = \"127.0.0.1:3000\"\n",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_set_header Host $host; proxy_read_timeout 5m; client_max_body_size 0; }",
        "backend = \"app\"\nencoded_slashes = true\nbackend_host = \"{host}\"\nrequest_headers = { \"X-Request-Id\" = \"{header:x-request-id}\" }\ntimeout = \"300s\"\nrequest_body = 1099511627776\n",
    ),
    ("location /b/ { proxy_pass http://app; }", "balance = \"least-connections\""),
    (
        "location /b/ { proxy_pass http://app; }",
        "[[backend.server]]\naddress = \"10.0.0.2:81\"\nbackup = true",
    ),
    (
        "location /b/ { proxy_pass http://app; client_max_body_size 5g; }",
        "request_spool = 10737418240\n",
    ),
    (
        "location /b/ { proxy_pass http://app; client_max_body_size 0; }",
        "`client_max_body_size 0` is not carried over as it is",
    ),
    ("location /b/ { proxy_pass http://app; }", "backend_host = \"app\""),
    ("location /b/ { proxy_pass http://a_b; }", "servers are not asked for the host `a_b`"),
    ("location /b/ { proxy_pass http://unix:/a; }", "backend_host = \"localhost\""),
    (
        "location /b/ { proxy_pass http://app; proxy_set_header Host $host:$server_port; }",
        "backend_host = \"{host}:{port}\"",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_hide_header X-A; proxy_hide_header Server; add_header X-B c; }",
        "headers = { \"X-B\" = \"c\", \"X-A\" = [] }",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Port $server_port; proxy_set_header X-Url '$scheme://${host}/{'; proxy_set_header X-No $http_x; }",
        "request_headers = { \"X-Real-IP\" = \"{client_ip}\", \"X-Port\" = \"443\", \"X-Url\" = \"{scheme}://{host}/{{\", \"X-No\" = \"{header:x}\", \"X-Request-Id\" = \"{header:x-request-id}\" }",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_set_header Early-Data $ssl_early_data; }",
        "\"Early-Data\" = []",
    ),
    (
        "status_zone a; location /b/ { proxy_pass http://app; health_check match=ok; }",
        "text_prefix = \"/b/\"\nbackend = \"app\"",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_set_header X-Request-ID $request_id; }",
        "request_headers = { \"X-Request-ID\" = \"{request_id}\" }",
    ),
    ("add_header X-Request-ID $request_id;", "\"X-Request-ID\" = \"{request_id}\""),
    (
        "location /b/ { proxy_pass http://app; proxy_request_buffering off; }",
        "request_buffering = \"off\"",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_buffering on; }",
        "request_buffering = \"all\"\nresponse_buffering = true\nretry_on",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_buffering off; }",
        "request_buffering = \"all\"\nretry_on",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_next_upstream error http_503 non_idempotent; }",
        "response_buffering = true\nretry_on = [\"closed\", \"503\"]\nearly_hints",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_next_upstream error http_503 non_idempotent; }",
        "`non_idempotent` in `proxy_next_upstream error http_503 non_idempotent` is not carried over",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_next_upstream off; }",
        "response_buffering = true\nearly_hints",
    ),
    ("location /b/ { proxy_pass http://app; }", "retry_on = [\"closed\", \"timeout\"]"),
    ("location /b/ { proxy_pass http://a.example; }", "backend_host = \"a.example\""),
    (
        "location /b/ { proxy_pass https://a.example; }",
        "[backend.tls]\nname = \"a.example\"\n\n[[backend.server]]\naddress = \"a.example:443\"",
    ),
    ("location /b/ { proxy_pass http://unix:/run/a.sock:/b/; }", "address = \"unix:/run/a.sock\""),
    ("location /b/ { proxy_pass http://app/; }", "strip_prefix = true\nbackend_host"),
    ("location / { proxy_pass http://app/b/; }", "backend = \"app\"\nadd_prefix = \"/b/\"\n"),
    (
        "location /b { proxy_pass http://app/c$request_uri; }",
        "backend = \"app\"\nadd_prefix = \"/c\"\n",
    ),
    (
        "location /b { proxy_pass http://app$request_uri; }",
        "backend = \"app\"\nencoded_slashes = true\nbackend_host",
    ),
    (
        "location /b { rewrite ^/b/(.*)$ /$1 break; proxy_pass http://app; }",
        "text_prefix = \"/b/\"\nbackend = \"app\"\nstrip_prefix = true\n",
    ),
    (
        "location /b/ { rewrite ^/b/(.*)$ /c/$1 break; root /x; }",
        "text_prefix = \"/b/\"\nroot = \"/x/c\"\n",
    ),
    (
        "location /b/ { proxy_pass http://app/b/v1/; }",
        "strip_prefix = true\nadd_prefix = \"/b/v1/\"\n",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }",
        "websocket = true",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_set_header X-User $remote_user; proxy_set_header X-Key abc; proxy_set_header X-None ''; }",
        "request_headers = { \"X-User\" = [], \"X-Key\" = \"abc\", \"X-None\" = [], \"X-Request-Id\" = \"{header:x-request-id}\" }",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_set_header Upgrade $http_upgrade; proxy_set_header Upgrade websocket; }",
        "websocket = true",
    ),
    (
        "location /b/ { proxy_pass http://app; proxy_set_header X-A 1; proxy_set_header x-a 2; proxy_set_header X-A $x; proxy_set_header X-B ''; proxy_set_header X-B 3; }",
        "request_headers = { \"X-A\" = [\"1\", \"2\"], \"X-B\" = \"3\", \"X-Request-Id\" = \"{header:x-request-id}\" }",
    ),
    (
        "location /b/ { proxy_pass http://app; } location ~ /\\.ht { deny all; }",
        "[[site.route]]\nregex = \"/\\\\.ht\"\nrespond = { status = 403 }\n",
    ),
    (
        "location ~ /\\. { deny all; } try_files $uri /a.html;",
        "[[site.route]]\nregex = \"/\\\\.\"\nrespond = { status = 403 }\n",
    ),
    (
        "location /b/ { proxy_pass http://app; } location ~ \\.css$ { expires 1h; }",
        "regex = \"\\\\.css$\"\nroot = \"/srv\"\n",
    ),
    ("gzip on;", "compress = [\"gzip\"]"),
    (
        "gzip on;",
        "compress_types = [\"text/html\"]\ncompress_min = 20\ncompress_for_proxies = false\n",
    ),
    (
        "location /b/ { proxy_pass http://app; gzip on; gzip_types text/css *; gzip_min_length 1k; gzip_proxied any; }",
        "compress = [\"gzip\"]\ncompress_types = [\"text/html\", \"text/css\", \"*/*\"]\ncompress_min = 1024\n",
    ),
    (
        "add_header Access-Control-Allow-Origin https://a.example; add_header Access-Control-Max-Age 1;",
        "headers = { \"Access-Control-Allow-Origin\" = \"https://a.example\", \"Access-Control-Max-Age\" = \"1\" }",
    ),
    (
        "add_header Access-Control-Allow-Origin $http_origin;",
        "headers = { \"Access-Control-Allow-Origin\" = \"{header:origin}\" }",
    ),
    ("add_header Alt-Svc 'h3=\":443\"; ma=86400';", "nobody answers QUIC here"),
    ("add_header Alt-Svc 'h2=\":443\"';", "headers = { \"Alt-Svc\" = \"h2=\\\":443\\\"\" }"),
    ("try_files $uri =404;", "try = [\"{path}\"]\n"),
    ("try_files $uri /a.html;", "try = [\"{path}\"]\nfallback = \"/a.html\"\n"),
    ("try_files $uri $uri/index.html =404;", "try = [\"{path}\", \"{path}/index.html\"]\n"),
    ("location ~ ^/u/(.*)$ { alias /x/$1; }", "root = \"/x\"\n"),
    ("location ~ ^/u/(.*)$ { alias /x/$1; }", "try = [\"/{1}\"]\n"),
    ("location ~ ^/u/(?<n>.*)$ { root /x/$n; }", "try = [\"/{n}{path}\"]\n"),
    (
        "location /u/ { try_files $uri @b; } location @b { proxy_pass http://app; }",
        "root = \"/srv\"\nbackend = \"app\"\nmissing = \"backend\"\n",
    ),
    ("index b.html; try_files $uri $uri/ =404;", "index = [\"b.html\"]"),
    ("try_files $uri $uri/ /a.html;", "fallback = \"/a.html\"\nfallback_for_folders = false"),
    ("location /x/ { deny all; }", "`location /x/` answers 403 because of `deny all`"),
    ("location /x { deny all; }", "text_prefix = \"/x\"\nrespond = { status = 403 }"),
    (
        "auth_basic x; auth_basic_user_file empty;",
        "it is not there or has no users, so that nobody is let in",
    ),
    ("location /up/ { types { } }", "types = \"none\"\ndefault_type = \"text/plain\"\n"),
    (
        "location /up/ { types { } default_type application/octet-stream; }",
        "charset = \"off\"\ntypes = \"none\"\n\n",
    ),
    ("location = /x { types { } }", "exact = \"/x\"\nroot = \"/srv\""),
    ("secure_link $arg_md5,$arg_expires;", "`signed_urls` of a route"),
    (
        "try_files $uri /a.html; location ~ \\.js$ { expires 1h; }",
        "regex = \"\\\\.js$\"\nroot = \"/srv\"\n",
    ),
    (
        "try_files $uri /a.html; location = /a.html { return 302 /b; }",
        "try = [\"{path}\"]\nfallback = \"/a.html\"\n",
    ),
    (
        "try_files $uri /x/i.html; location /x/ { expires 1h; }",
        "try = [\"{path}\"]\nfallback = \"/x/i.html\"\n",
    ),
];
