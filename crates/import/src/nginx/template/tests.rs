use super::*;
use crate::files_in_memory::{Files, shown};

fn of(text: &str) -> String {
    let files = Files::with("/etc/nginx/nginx.conf", text);
    let made = template(Path::new("/etc/nginx/nginx.conf"), &files);
    made.unwrap_or_else(|diagnostics| panic!("{}", shown(&diagnostics)))
}

const ARTICLE: &str = r#"user www-data;
pid /run/nginx.pid;
events { worker_connections 1024; }
http {
    sendfile on;
    log_format mine '$remote_addr $geoip';
    access_log /var/log/nginx/access.log mine buffer=32k if=$x;
    types { text/html html htm; "application/x#y" xy; }
    map $a $b { default 1; }
    server { listen 80; return 301 https://$host$request_uri; }
    server {
        listen 443 ssl http2;
        server_name example.com;
        ssl_certificate /etc/ssl/a.pem;
        ssl_certificate_key /etc/ssl/a.key;
        ssl_protocols TLSv1.3;
        ssl_conf_command Options KTLS;
        add_header X-Kind "a;b \"c\"";
        add_header X-Cache $b;
        location / { root /srv; aio threads; auth_basic x; }
        location /app { proxy_pass http://app; }
    }
    server { listen 8443 ssl; sendfile off; }
}
"#;

#[test]
fn what_decides_the_cost_stays_and_the_place_becomes_words() {
    assert_eq!(
        of(ARTICLE),
        r#"# /etc/nginx/nginx.conf to be measured with: its server at /etc/nginx/nginx.conf:11, with files of the measurement at `/`.
# Left out: map (/etc/nginx/nginx.conf:9), add_header (/etc/nginx/nginx.conf:19), location (/etc/nginx/nginx.conf:21), auth_basic (/etc/nginx/nginx.conf:20)
worker_processes @WORKERS@;
worker_cpu_affinity @AFFINITY@;
daemon off;
user root;
pid nginx.pid;
error_log stderr warn;
events {
    worker_connections 1024;
}
http {
    client_body_temp_path client_body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    sendfile on;
    access_log @FOLDER@/access.log combined buffer=32k;
    types {
        text/html html htm;
        "application/x#y" xy;
    }
    server {
        listen @ADDRESS@ ssl reuseport backlog=65535;
        server_name localhost;
        ssl_certificate @CERTIFICATE@;
        ssl_certificate_key @KEY@;
        ssl_protocols TLSv1.3;
        ssl_conf_command Options KTLS;
        add_header X-Kind "a;b \"c\"";
        location / {
            aio threads;
            root @SITE@;
        }
    }
}
"#
    );
}

#[test]
fn a_template_is_one_that_nginx_and_kettle_read() {
    let filled = of(ARTICLE)
        .replace("@WORKERS@", "2")
        .replace("@AFFINITY@", "auto 11")
        .replace("@ADDRESS@", "127.0.0.1:4443")
        .replace("@CERTIFICATE@", "/c.pem")
        .replace("@KEY@", "/c.key")
        .replace("@SITE@", "/site")
        .replace("@FOLDER@", "/folder");
    assert!(!filled.contains('@'));
    let files = Files::with("/nginx.conf", &filled);
    let imported = crate::nginx::import_file(Path::new("/nginx.conf"), &files);
    let imported = imported.unwrap_or_else(|diagnostics| panic!("{}", shown(&diagnostics)));
    let config = imported.config().unwrap_or_else(|diagnostics| panic!("{}", shown(&diagnostics)));
    assert_eq!(config.sites.len(), 1);
}

#[test]
fn where_nothing_is_logged_on_purpose_or_by_default() {
    let server = "server { listen 443 ssl; }";
    assert!(
        of(&format!("http {{ {server} }}")).contains("access_log @FOLDER@/access.log combined;")
    );
    let silent = of(&format!("http {{ access_log off; {server} }}"));
    assert!(silent.contains("access_log off;") && !silent.contains("combined"), "{silent}");
}

#[test]
fn words_that_look_like_ours_stay_out() {
    let made = of("http { server { listen 443 ssl; add_header X @KEY@; } }");
    assert!(!made.contains("add_header X"), "{made}");
    let mut path = Files::default();
    path.0.insert("/@KEY@.conf".into(), "http { server { listen 1 ssl; } }".to_owned());
    let made = template(Path::new("/@KEY@.conf"), &path).unwrap_or_default();
    assert!(made.starts_with("# /(at)KEY(at).conf"), "{made}");
}

#[test]
fn without_tls_there_is_nothing_to_measure() {
    for text in ["", "http { server { listen 80; } }", "stream { server { listen 443 ssl; } }"] {
        let files = Files::with("/n.conf", text);
        let diagnostics = template(Path::new("/n.conf"), &files).unwrap_err();
        assert!(diagnostics[0].to_string().contains("ssl"), "{}", shown(&diagnostics));
    }
}
