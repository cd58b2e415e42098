//! Programs by FastCGI: which file runs, and what is closed because a request would say more of it than kettle lets it.

use kettle_config::{BackendProtocol, FastCgi, Route};

use super::*;

const PARAMS: &str = "fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_param QUERY_STRING $query_string; \
                      fastcgi_param SCRIPT_NAME $fastcgi_script_name; fastcgi_param HTTPS $https if_not_empty;";

/// The routes of a server with these words.
fn routes(words: &str) -> Vec<Route> {
    let config = config(&server(&format!("root /srv/www; {words}")));
    for backend in &config.backends {
        assert_eq!(backend.protocol, BackendProtocol::FastCgi);
    }
    config.sites[0].routes.clone()
}

fn programs(words: &str) -> (Route, FastCgi) {
    let route = routes(words).into_iter().find(|route| route.fastcgi.is_some());
    let route = route.unwrap_or_else(|| panic!("no route has programs: {words}"));
    let fastcgi = route.fastcgi.clone().unwrap();
    (route, fastcgi)
}

#[test]
fn programs_are_told_the_server_that_they_know() {
    for (said, told) in [
        ("nginx/$nginx_version", Some("nginx")),
        ("nginx", Some("nginx")),
        ("other", Some("other")),
    ] {
        let words = format!(
            "location ~ \\.php$ {{ {PARAMS} fastcgi_param SERVER_SOFTWARE {said}; fastcgi_pass unix:/run/php.sock; }}"
        );
        let (_, fastcgi) = programs(&words);
        let value = fastcgi.params.iter().find(|(name, _)| name == "SERVER_SOFTWARE");
        let value = value.and_then(|(_, values)| values.first()?.plain());
        assert_eq!(value, told, "{said}");
    }
}

#[test]
fn a_place_for_one_program_runs_that() {
    for (path, ending) in
        [("/xmlrpc.php", Some(".php")), ("/a.php/run.cgi", Some(".cgi")), ("/run", None)]
    {
        let all =
            routes(&format!("location = {path} {{ {PARAMS} fastcgi_pass unix:/run/php.sock; }}"));
        let route = all.iter().find(|it| it.exact.as_deref() == Some(path)).unwrap();
        let endings = route.fastcgi.as_ref().map(|it| it.extensions.join(" "));
        assert_eq!(endings.as_deref(), ending, "{path}");
        assert_eq!(route.root.is_some(), ending.is_some(), "{path}");
    }
}

#[test]
fn a_location_for_php_becomes_a_route_with_programs() {
    for (regex, tries, split, fallback, path_info) in [
        (r"\.php$", "", "", None, false),
        (r"\.php$", "try_files $uri =404;", "", None, false),
        (r"\.php$", "try_files $uri $uri/ /doku.php;", "", None, false),
        (r"\.php(/|$)", "try_files $uri $uri/ /doku.php;", "", Some("/doku.php"), false),
        (
            r"[^/]\.php(/|$)",
            "try_files $fastcgi_script_name =404;",
            r"^(.+?\.php)(/.*)$",
            None,
            true,
        ),
        (
            r"^(.+\.php)(.*)$",
            "if (!-f $document_root$fastcgi_script_name) { return 404; }",
            r"^(.+\.php)(.*)$",
            None,
            true,
        ),
        (r"^/(index|load)\.php$", "", "", None, false),
        (r"^/app/(.+\.php)$", "", "", None, false),
    ] {
        let split = if split.is_empty() {
            String::new()
        } else {
            format!("fastcgi_split_path_info {split};")
        };
        let words = format!(
            "location ~ {regex} {{ {tries} {split} {PARAMS} fastcgi_pass unix:/run/php.sock; fastcgi_read_timeout 300; \
             client_max_body_size 8m; fastcgi_intercept_errors on; fastcgi_param APP_ENV prod; }}"
        );
        let (route, fastcgi) = programs(&words);
        assert_eq!(
            route.root.as_ref().map(|root| root.value.as_path()),
            Some(Path::new("/srv/www"))
        );
        assert_eq!(fastcgi.extensions, [".php"], "{words}");
        assert_eq!(fastcgi.path_info, path_info, "{words}");
        assert_eq!(fastcgi.ask_missing, tries.is_empty(), "{words}");
        assert_eq!(route.fallback.as_deref(), fallback, "{words}");
        let passed = &route.request_headers[..];
        assert!(passed.len() == 1 && passed[0].0.eq_ignore_ascii_case("x-forwarded-proto"));
        assert_eq!(route.timeout.as_secs(), 300);
        assert_eq!(route.request_body, 8 * 1024 * 1024);
        assert!(route.intercept_errors && fastcgi.script.is_none());
        let mut told = vec!["APP_ENV"];
        // nginx tells it where somebody says so.
        told.extend(path_info.then_some("PATH_INFO"));
        assert_eq!(fastcgi.params.iter().map(|it| &*it.0).collect::<Vec<_>>(), told);
        assert!(fastcgi.params.iter().skip(1).all(|it| it.1.is_empty()));
    }
}

#[test]
fn what_follows_a_program_without_a_slash_is_no_file() {
    let all = routes(&format!(
        "location ~ ^(.+\\.php)(.*)$ {{ fastcgi_split_path_info ^(.+\\.php)(.*)$; {PARAMS} fastcgi_pass unix:/run/php.sock; }}"
    ));
    let of_place: Vec<_> = all.iter().filter(|it| it.regex.is_some()).collect();
    let [programs, other] = of_place.as_slice() else { panic!("{all:#?}") };
    assert_eq!(other.respond.as_ref().map(|it| it.status), Some(404));
    let fits = |route: &Route, path| route.regex.as_ref().is_some_and(|it| it.fits(path));
    for (path, runs) in [("/a.php", true), ("/a.php/x", true), ("/a.phpx", false)] {
        assert_eq!((fits(programs, path), fits(other, path)), (runs, true), "{path}");
    }
}

#[test]
fn a_program_of_its_own_answers_for_a_whole_location() {
    for (value, script) in [
        ("/usr/lib/git-core/git-http-backend", "/usr/lib/git-core/git-http-backend"),
        ("$document_root/w/index.php", "/srv/www/w/index.php"),
    ] {
        let words = format!(
            "location ~ ^/git(/.*) {{ fastcgi_pass 127.0.0.1:9000; fastcgi_param SCRIPT_FILENAME {value}; \
             fastcgi_param PATH_INFO $1; fastcgi_param REMOTE_USER $remote_user; fastcgi_param GIT_ROOT /srv/git; }}"
        );
        let (route, fastcgi) = programs(&words);
        assert_eq!((route.root, fastcgi.script.as_deref()), (None, Some(script)));
        let names: Vec<&str> = fastcgi.params.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["PATH_INFO", "GIT_ROOT", "SCRIPT_NAME"]);
        assert!(fastcgi.params[2].1.is_empty(), "nginx does not say it");
    }
    let named = "location / { try_files $uri @cgit; } location @cgit { fastcgi_pass unix:/run/cgi.sock; \
                 fastcgi_param SCRIPT_FILENAME /usr/lib/cgit.cgi; }";
    let (route, fastcgi) = programs(named);
    assert!(route.root.is_some() && fastcgi.script.as_deref() == Some("/usr/lib/cgit.cgi"));
    let application = routes("location /app/ { fastcgi_pass 127.0.0.1:9000; }");
    let route = application.iter().find(|route| route.backend.is_some()).unwrap();
    assert!(route.fastcgi.as_ref().is_some_and(|it| it.script.is_none()) && route.root.is_none());
}

#[test]
fn what_would_run_any_file_is_closed() {
    let other = "fastcgi_param SCRIPT_FILENAME $document_root$arg_file;";
    for words in [
        format!("location ~ \\.php$ {{ {other} fastcgi_pass a:9000; }}"),
        format!("location ~ \\.php$ {{ {PARAMS} fastcgi_pass $pool; }}"),
        format!("location ~ \\.(php|inc)$ {{ {PARAMS} fastcgi_pass a:9000; }}"),
        format!("location /all/ {{ {PARAMS} fastcgi_pass a:9000; }}"),
        format!(
            "location ~ \\.php(/|$) {{ try_files $uri /index.php?q=$uri; {PARAMS} fastcgi_pass a:9000; }}"
        ),
        format!("location ~ \\.php$ {{ root /srv/$host; {PARAMS} fastcgi_pass a:9000; }}"),
        "location /app/ { try_files $uri =404; fastcgi_pass a:9000; }".to_owned(),
    ] {
        let routes = routes(&words);
        assert!(routes.iter().all(|route| route.fastcgi.is_none()), "{words}");
        assert!(routes.iter().any(|route| !route.deny.is_empty()), "{words}");
    }
}

/// As with `proxy_pass`: a route for each text of the map, and the backend of its default where none of them is said.
#[test]
fn a_map_chooses_who_runs_programs() {
    let text =
        server(&format!("root /srv/www; location ~ \\.php$ {{ {PARAMS} fastcgi_pass $php; }}"));
    let map = "map $cookie_next $php { default 127.0.0.1:9000; 1 unix:/run/next.sock; }";
    let made = imported(&text.replace("http {", &format!("http {{ {map}")));
    let config = made.config().unwrap();
    let found: Vec<_> = config.sites[0].routes.iter().filter(|it| it.fastcgi.is_some()).collect();
    let [chosen, all] = found[..] else { panic!("{}", made.toml) };
    assert!(chosen.when.len() == 1 && all.when.is_empty(), "{}", made.toml);
    let names = [chosen, all].map(|it| it.backend.as_ref().unwrap().value.clone());
    assert_eq!(names, ["unix:-run-next.sock-fastcgi", "127.0.0.1:9000-fastcgi"]);
}

/// As nginx's own files have them.
const UWSGI_PARAMS: &str = "uwsgi_param QUERY_STRING $query_string; uwsgi_param REQUEST_METHOD $request_method; uwsgi_param CONTENT_TYPE $content_type; \
    uwsgi_param CONTENT_LENGTH $content_length; uwsgi_param REQUEST_URI $request_uri; uwsgi_param PATH_INFO $document_uri; \
    uwsgi_param DOCUMENT_ROOT $document_root; uwsgi_param SERVER_PROTOCOL $server_protocol; uwsgi_param REQUEST_SCHEME $scheme; \
    uwsgi_param HTTPS $https if_not_empty; uwsgi_param REMOTE_ADDR $remote_addr; uwsgi_param REMOTE_PORT $remote_port; \
    uwsgi_param SERVER_PORT $server_port; uwsgi_param SERVER_NAME $server_name;";

#[test]
fn applications_behind_uwsgi_and_scgi_are_told_what_nginx_tells_them() {
    let own = "client_max_body_size 75M; location / { P uwsgi_read_timeout 9s; uwsgi_param A $host; uwsgi_pass django; }";
    let own = own.replace('P', UWSGI_PARAMS);
    let file = server(&format!("root /srv/www; {own}"))
        .replace("http {", "http { upstream django { server unix:///run/site.sock; }");
    let made = config(&file);
    let backend = &made.backends[0];
    let route = &made.sites[0].routes[0];
    assert_eq!(backend.protocol, BackendProtocol::Uwsgi);
    assert_eq!(backend.servers[0].address.value.to_string(), "unix:///run/site.sock");
    assert_eq!((route.timeout.as_secs(), route.request_body), (9, 75 << 20));
    let told = |route: &Route| {
        let params = &route.fastcgi.as_ref().unwrap().params;
        params.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(told(route), "DOCUMENT_ROOT A");
    for (words, params) in [
        ("uwsgi_pass 10.0.0.1:3031;", Some("PATH_INFO")),
        (
            "uwsgi_param SCRIPT_NAME /a; uwsgi_param PATH_INFO $uri; uwsgi_pass uwsgi://a:1;",
            Some("SCRIPT_NAME"),
        ),
        (
            "scgi_param SCGI 1; scgi_param PATH_INFO $fastcgi_path_info; scgi_pass a:1;",
            Some("PATH_INFO"),
        ),
        (
            "scgi_param SCRIPT_NAME $fastcgi_script_name; scgi_param PATH_INFO $uri; scgi_pass a:1;",
            None,
        ),
        ("uwsgi_param PATH_INFO $uri; uwsgi_modifier1 0; fastcgi_param B c; uwsgi_pass a:1;", None),
    ] {
        let made = config(&server(&format!("location /a/ {{ {words} }}")));
        let route = &made.sites[0].routes[0];
        assert!(route.deny.is_empty() && route.backend.is_some(), "{words}");
        assert_eq!(route.fastcgi.is_some().then(|| told(route)).as_deref(), params, "{words}");
    }
    for words in ["uwsgi_modifier1 5; uwsgi_pass a:1;", "uwsgi_pass suwsgi://a:1;", "scgi_pass $a;"]
    {
        let made = config(&server(&format!("location /a/ {{ {words} }}")));
        assert!(!made.sites[0].routes[0].deny.is_empty(), "{words}");
    }
}

#[test]
fn what_is_no_file_goes_to_an_application_by_uwsgi() {
    let made = config(&server(&format!(
        "root /srv/www; location / {{ try_files $uri @app; }} location @app {{ {UWSGI_PARAMS} uwsgi_pass a:1; }}"
    )));
    let routes = &made.sites[0].routes;
    assert!(routes.iter().any(|it| it.backend.is_some() && it.deny.is_empty()), "{routes:?}");
    assert!(routes.iter().any(|it| it.root.is_some() && it.backend.is_none()), "{routes:?}");
}

#[test]
fn an_alias_runs_what_lies_there_where_the_file_itself_is_told() {
    let alias = |inner: &str, script: &str| {
        routes(&format!(
            "location /pma {{ alias /usr/share; location ~ {inner} fastcgi_pass unix:/run/php.sock; \
             fastcgi_param SCRIPT_FILENAME {script}; fastcgi_param DOCUMENT_ROOT $document_root; }} }}"
        ))
    };
    for (inner, root) in [
        (r"^/pma/(.+\.php)$ { alias /usr/share/$1;", "/usr/share/{1}"),
        (r"\.php$ {", "/usr/share"),
    ] {
        let all = alias(inner, "$request_filename");
        let route = all.iter().find(|it| it.fastcgi.is_some()).unwrap();
        let place = (route.prefix.as_deref(), route.strip_prefix, route.replaced());
        assert_eq!(place, (Some("/pma"), true, "/pma"), "{inner}");
        assert_eq!(route.root.as_ref().unwrap().value.to_str(), Some("/usr/share"));
        let params = &route.fastcgi.as_ref().unwrap().params;
        let told = params.iter().find(|(name, _)| name == "DOCUMENT_ROOT");
        let told = told.map(|(_, values)| {
            values[0].parts().iter().map(ToString::to_string).collect::<String>()
        });
        assert_eq!(told.as_deref().unwrap_or("/usr/share"), root, "{inner}");
        // The whole path stands behind the folder then, and nothing lies there.
        let all = alias(inner, "$document_root$fastcgi_script_name");
        assert!(all.iter().all(|it| it.fastcgi.is_none()), "{inner}");
    }
}

#[test]
fn a_path_that_nothing_takes_apart_has_an_empty_rest() {
    for (split, told) in [("", Some("")), (r"fastcgi_split_path_info ^(.+\.php)(/.*)$;", None)] {
        let words = format!(
            "location ~ \\.php(/|$) {{ {PARAMS} {split} fastcgi_param PATH_INFO $fastcgi_path_info; fastcgi_pass unix:/run/php.sock; }}"
        );
        let (_, fastcgi) = programs(&words);
        let value = fastcgi.params.iter().find(|(name, _)| name == "PATH_INFO");
        assert_eq!(value.and_then(|(_, values)| values.first()?.plain()), told, "{split}");
    }
}
