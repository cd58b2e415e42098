//! The table itself, and files and texts of other programs.

use std::path::Path;

use super::shape::{Program, program};
use super::spelling::{about_variable, straight, variable, with_hint};
use super::*;
use crate::diagnostic::Diagnostic;
use crate::reference::{reference_markdown, tables_with};

#[test]
fn each_word_stands_once_and_leads_to_what_there_is() {
    for (table, what) in [(SETTINGS, "setting"), (VALUES, "value")] {
        let mut words: Vec<&str> = table.iter().map(|(word, _)| *word).collect();
        assert!(words.iter().all(|word| plain(word) == *word), "{what}");
        words.sort_unstable();
        let count = words.len();
        words.dedup();
        assert_eq!(words.len(), count, "a {what} stands twice");
    }
    let options = ["cert", "browse"];
    for (word, here) in SETTINGS {
        if let Here::Called(names) = here {
            let exists = |name: &&&str| {
                !tables_with(name).is_empty()
                    || ["listener", "site", "backend", "metrics"].contains(name)
                    || options.contains(name)
            };
            assert!(names.iter().any(|name| exists(&name)), "{word} leads to none of {names:?}");
        }
    }
    let manual = reference_markdown();
    for (word, here) in VALUES {
        if let Here::Called(names) = here {
            let is_there = |name: &&str| manual.contains(&format!("`\"{name}\"`"));
            assert!(names.iter().any(is_there) || *word == "crit", "{word}: {names:?}");
        }
    }
}

/// Another server's word is a guess only where this server has no such setting.
#[test]
fn no_word_of_the_table_that_is_refused_is_a_setting() {
    for (word, here) in SETTINGS {
        let is_setting = !tables_with(word).is_empty();
        assert!(!is_setting || matches!(here, Here::Called(_) | Here::Do(_)), "{word}");
    }
}

#[test]
fn a_word_means_a_setting_only_where_it_exists() {
    assert_eq!(called("server-name", &["names", "default"]), Some("names"));
    assert_eq!(called("server_name", &["workers"]), None);
    assert_eq!(value("LeastConn", &["least-connections"]), Some("least-connections"));
}

#[test]
fn a_word_has_names_or_advice() {
    assert_eq!((names("server_name"), names("http3")), (&["names"][..], &[][..]));
    assert_eq!(names("no_word"), [""; 0]);
    assert_eq!((advice("server_name"), advice("no_word")), (None, None));
    assert_eq!(value_advice("UDP").as_deref(), Some("it is not here: kettle speaks TCP"));
    assert_eq!((value_advice("ktls"), value_advice("no_word")), (None, None));
}

#[test]
fn importers_get_the_same_words() {
    assert!(not_here("http3").starts_with("HTTP/1.1 and HTTP/2 are spoken"));
    assert_eq!((not_here("server_name"), not_here("http"), not_here("http33")), ("", "", ""));
    const WHY: &str = not_here("ssl_dhparam");
    assert_eq!(advice("ssl-dhparam"), Some(format!("remove it, it is not here: {WHY}")));
}

const NGINX: &str = "user www-data;\nevents { worker_connections 768; }\nhttp {\n  log_format main '$remote_addr '\n\
  'rt=$request_time \"$request\"';\n  server {\n    listen 443 ssl;\n    server_name example.org;\n\
  location = /a { return 200; }\n location ~ \\.php$ {\n fastcgi_pass x;\n }\n }\n}\n";
const NGINX_SITE: &str = "# managed\nserver {\n\tlisten 80;\n\tset $a b=c;\n\troot /srv;\n}\n";
const HAPROXY: &str = "global\n    log stdout\n    maxconn 4000\n\nfrontend web\n    bind *:443 ssl crt /etc/x.pem\n\
  http-response set-header Strict-Transport-Security \"max-age=63072000\"\n    default_backend app\n\nbackend app\n\
  server one 127.0.0.1:8080 check\n";
const CADDY: &str = "{\n\temail a@example.org\n}\n\nexample.org, www.example.org {\n\troot * /srv\n\tencode gzip\n\tfile_server\n\
  header Cache-Control max-age=3600\n}\n";
const CADDY_SHORT: &str = "localhost:8080\n\nreverse_proxy 127.0.0.1:9000\n";

#[test]
fn configurations_of_other_servers_are_known_by_their_shape() {
    for (text, expected) in [
        (NGINX, Program::Nginx),
        (NGINX_SITE, Program::Nginx),
        (HAPROXY, Program::Haproxy),
        (CADDY, Program::Caddy),
        (CADDY_SHORT, Program::Caddy),
    ] {
        assert_eq!(program(text), Some(expected), "{text}");
        let found = crate::parse(text, Path::new("x.conf")).unwrap_err();
        let said: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(said, [expected.message()], "{text}");
    }
}

#[test]
fn what_to_do_with_another_program_s_file_is_said() {
    let said =
        [Program::Nginx, Program::Haproxy, Program::Caddy].map(|it| (it.message(), it.help()));
    let [nginx, haproxy, caddy] = said.map(|(message, help)| format!("{message}; {help}"));
    assert!(nginx.contains("of nginx") && nginx.contains("kettle import nginx FILE"), "{nginx}");
    assert!(haproxy.contains("HAProxy") && haproxy.contains("kettle reference"), "{haproxy}");
    assert!(caddy.contains("Caddyfile") && caddy.contains("kettle reference"), "{caddy}");
}

#[test]
fn a_broken_kettle_toml_is_never_taken_for_another_program_s() {
    let broken = [
        "",
        "[server\nworkers 4;\nserver {\nlisten 443;\n}\n",
        "[[listener]\naddress 0.0.0.0:443\n",
        "workers = 4;\nserver {\n listen 443;\n root /srv;\n}\n",
        "listener {\n  address 0.0.0.0:443\n}\nsite {\n  root /srv\n}\n",
        "server:\n  listen: 443\n  root: /srv\n",
        "{ \"server\": { \"listen\": 443 } }\n",
        "global\nlisten\n",
        "root /srv\n",
        "example.org\n",
        "backend\n  server = \"a\"\n",
        "root = “/srv”\nserver {\n listen 443;\n}\n",
        "root = /srv\nserver {\n listen 443;\n}\n",
        "server {\n root /srv\n}\n",
        "site {\n listen 443;\n root /srv;\n}\n",
        "http 443;\nroot /srv;\n",
    ];
    for text in broken {
        assert_eq!(program(text), None, "{text}");
    }
    // Line by line broken, as long as one line of it is left.
    let whole = "[[listener]]\naddress = \"0.0.0.0:443\"\n[[site]]\nnames = [\"a\"]\n[[site.route]]\nroot = \"/srv\"\n";
    for line in whole.lines() {
        for strange in [NGINX_SITE, HAPROXY, CADDY] {
            assert_eq!(program(&format!("{strange}{line}\n")), None, "{line}");
        }
    }
}

#[test]
fn variables_are_found_and_other_dollars_are_not() {
    for (text, expected) in [
        ("$HOME/www", Some("$HOME")),
        ("/srv/${WEB}/x", Some("${WEB}")),
        ("{$SITE}", Some("$SITE")),
        ("/new/$1", Some("$1")),
        ("5 $ a day, \\.php$", None),
        ("${}", None),
        ("${open", None),
        ("$ $x", Some("$x")),
    ] {
        assert_eq!(variable(text), expected, "{text}");
    }
}

#[test]
fn curly_quotes_become_straight_ones_where_they_surround_a_value() {
    for (text, expected) in [
        ("“/srv”", Some("\"/srv\"")),
        ("\"“/srv”\"", Some("\"/srv\"")),
        ("[‘a’, “b”]", Some("[\"a\", \"b\"]")),
        ("„a“", Some("\"a\"")),
        ("\"a “b” c\"", None),
        ("plain", None),
    ] {
        assert_eq!(straight(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn help_says_what_to_write_in_place_of_a_variable_or_of_curly_quotes() {
    let help = |offending: &str| {
        let mistake = Diagnostic::without_place(Path::new("x"), "no", Some("as it was".to_owned()));
        with_hint(Diagnostic { offending: offending.to_owned(), ..mistake }).help.unwrap()
    };
    assert_eq!(help("/srv/$HOME"), about_variable("$HOME"));
    assert!(help("/srv/$HOME").contains("variables such as `$HOME` are not filled in"));
    assert!(help("/new/$1").ends_with("what a star of `from` stands for is `{1}`"));
    assert_eq!(help("“/srv”"), "write \"/srv\"");
    assert_eq!(help("plain"), "as it was");
}
