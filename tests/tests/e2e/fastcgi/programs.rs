//! Which files are programs: they are run, and never sent.

use super::*;

/// A folder as people have them.
fn with_files(setup: Setup) -> Setup {
    let sources = [
        "index.php",
        "a.php",
        "wp-admin/index.php",
        "a.PHP",
        "a.php~",
        "a.php.bak",
        "a.php.gz",
        "a.php.br",
        "index.php.gz",
        ".a.php.swp",
        "a.phtml",
        "upload/x.php",
        "dir.php/b.php",
    ];
    let setup =
        sources.iter().fold(setup, |setup, name| setup.file(&format!("www/{name}"), SOURCE));
    setup
        .file("www/b.html", "<p>b")
        .file("www/upload/evil.jpg", SOURCE)
        .file("www/plain/readme.txt", "read")
        .file("www/start/index.html", "home")
}

fn is_source(body: &[u8]) -> bool {
    body.windows(SOURCE.len()).any(|window| window == SOURCE.as_bytes())
}

/// The path of the program that runs for a target; what the client gets if none does.
fn runs(client: &mut Client, application: &Backend, method: &str, target: &str) -> String {
    client.send(&request(method, target, "")).unwrap();
    let asked = answer(&mut application.accept(), "Content-Length: 2\n\nok");
    assert_eq!(client.response_head().status, 200, "{method} {target}");
    if method != "HEAD" {
        assert_eq!(client.receive_exactly(2), b"ok");
    }
    asked.param("SCRIPT_NAME").to_owned()
}

#[test]
fn files_and_programs_lie_side_by_side() {
    let application = Backend::listen();
    let setup = programs("", "index = \"index.php\"", "", &[application.address()]);
    let kettle = Kettle::start(with_files(setup));
    let mut client = Dialer::default().connect(kettle.address());
    for (target, program) in [
        ("/", "/index.php"),
        ("/a.php", "/a.php"),
        ("/wp-admin/", "/wp-admin/index.php"),
        ("/2024/01/hello-world/?a=b", "/index.php"),
        ("/none.php", "/index.php"),
        ("/a.php/b", "/index.php"),
        ("/plain/", "/index.php"),
        ("/dir.php/b.php", "/dir.php/b.php"),
    ] {
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
            let ran = runs(&mut client, &application, method, target);
            assert_eq!(ran, program, "{method} {target}");
        }
    }
    for (target, body) in [("/b.html", "<p>b"), ("/start/", "home"), ("/plain/readme.txt", "read")]
    {
        let response = client.get(target);
        assert_eq!((response.status, response.body), (200, body.as_bytes().to_vec()), "{target}");
    }
    assert_eq!(client.get("/wp-admin").status, 301);
    client.send(&request("POST", "/b.html", "")).unwrap();
    assert_eq!(client.response().status, 405, "a file takes no form");
}

/// Neither is a file read nor a folder listed for what only programs take.
#[test]
fn a_method_that_no_file_takes_reads_none() {
    let listen = unused_address();
    let setup = programs("listing = true", "", "", &[unused_address()]).metrics(listen);
    let kettle = Kettle::start(with_files(setup));
    let mut client = Dialer::default().connect(kettle.address());
    for target in ["/b.html", "/start/", "/upload/"] {
        for method in ["POST", "DELETE", "x"] {
            client.send(&request(method, target, "")).unwrap();
            let response = client.response();
            let got = (response.status, response.header("allow"));
            assert_eq!(got, (405, Some("GET, HEAD, OPTIONS")), "{method} {target}");
        }
    }
    let text = kettle_tests::tool::scrape(listen);
    assert!(text.contains("kettle_file_lookups_total{outcome=\"miss\"} 0"), "{text}");
    assert_eq!((client.get("/b.html").status, client.get("/upload/").status), (200, 200));
}

/// The forms of CVE-2019-11043 and of CVE-2013-4547, and an upload that is called as a program is.
#[test]
fn no_path_runs_a_file_that_is_none_of_it() {
    let application = Backend::listen();
    for fastcgi in ["", "path_info = true"] {
        let setup = programs("", fastcgi, "", &[application.address()]);
        let kettle = Kettle::start(with_files(setup));
        let mut client = Dialer::default().connect(kettle.address());
        for target in [
            "/upload/evil.jpg/x.php",
            "/upload/evil.jpg/.php",
            "/upload/evil.jpg%00.php",
            "/upload/evil.jpg%20/x.php",
            "/upload/evil.jpg%0a/x.php",
            "/a.php%0a/x",
            "/a.php%0aindex.php",
            "/a.php%00.jpg",
            "/index.php%2f..%2fa.php",
            "/..%2fa.php",
            "/%2e%2e/www/a.php",
            "/none.php",
            "/dir.php/none.php",
            "/dir.php",
        ] {
            let response = client.get(target);
            assert!([301, 400, 404].contains(&response.status), "{target}: {}", response.status);
            assert!(!is_source(&response.body), "{target}");
            if response.header("connection") == Some("close") {
                client = Dialer::default().connect(kettle.address());
            }
        }
    }
    application.assert_unasked();
}

/// An application that looks for a file on the way to the program finds none: there are only folders.
#[test]
fn an_application_is_asked_for_what_is_not_there_in_a_folder_that_is() {
    let application = Backend::listen();
    for fastcgi in ["ask_missing = true", "ask_missing = true, path_info = true"] {
        let setup = programs("", fastcgi, "", &[application.address()]);
        let kettle = Kettle::start(with_files(setup));
        let mut client = Dialer::default().connect(kettle.address());
        for target in ["/none.php", "/dir.php/none.php", "/upload/evil.php", "/a.php"] {
            assert_eq!(runs(&mut client, &application, "GET", target), target);
        }
        for target in [
            "/upload/evil.jpg/x.php",
            "/none/x.php",
            "/b.html/none.php",
            "/none.PHP",
            "/none.php.bak",
            "/none.php/x",
            "/none",
        ] {
            assert_eq!(client.get(target).status, 404, "{target}");
        }
    }
    application.assert_unasked();
}

/// By index, tries, fallback, compressed forms, ranges, listings, other routes, other sites, and where the application is down.
#[test]
fn no_source_is_sent_in_any_way() {
    let address = unused_address();
    let own = "compress = [\"gzip\"]\nprecompressed = [\"gzip\", \"br\"]\nlisting = true\ndotfiles = true";
    let more = "\n[[site.route]]\nprefix = \"/other\"\nroot = \"www\"\nlisting = true\nprecompressed = [\"gzip\"]\n\
                index = [\"index.php\"]\n\
                [[site.route]]\nprefix = \"/below\"\nroot = \"www/wp-admin\"\nindex = [\"index.php\"]\n\
                [[site.route]]\nprefix = \"/above\"\nroot = \".\"\n\
                [[site.route]]\nprefix = \"/tried\"\nroot = \"www\"\ntry = [\"{path}\", \"/a.php\", \"/a.PHP\", \"/index.php\"]\n\
                [[site.route]]\nprefix = \"/back\"\nroot = \"www\"\nfallback = \"/a.php\"\n\
                [[site]]\nnames = [\"other.example\"]\n\
                [[site.certificate]]\nchain = \"localhost.pem\"\nkey = \"localhost.key\"\n\
                [[site.route]]\nroot = \"www\"\nindex = [\"index.php\"]\n";
    let setup = programs(own, "", "", &[address]).more(more);
    let kettle = Kettle::start(with_files(setup));
    let places = ["", "/other", "/below", "/above/www", "/tried", "/back"];
    let names = [
        "/",
        "/index.php",
        "/a.php",
        "/a.PHP",
        "/a.php~",
        "/a.php.bak",
        "/a.php.gz",
        "/a.php.br",
        "/index.php.gz",
        "/.a.php.swp",
        "/a.phtml",
        "/wp-admin/",
        "/wp-admin/index.php",
        "/upload/x.php",
        "/dir.php/b.php",
        "/none",
    ];
    for host in ["localhost", "other.example"] {
        for place in places {
            for name in names {
                for fields in ["", "Accept-Encoding: gzip, br\r\n", "Range: bytes=0-99\r\n"] {
                    let mut client = Dialer::default().connect(kettle.address());
                    let head =
                        format!("GET {place}{name} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
                    client.send(head.as_bytes()).unwrap();
                    let response = client.response();
                    assert!(!is_source(&response.body), "{host} {place}{name} {fields}");
                    let is_listing = name.ends_with('/') && response.status == 200;
                    let is_refused = [403, 404, 421, 502, 503].contains(&response.status);
                    assert!(is_listing || is_refused, "{host} {place}{name}: {}", response.status);
                }
            }
        }
    }
    assert_eq!(kettle.entry("/a.php").number("status"), 502);
}

/// nginx's two places: one for files, whose fallback and index are programs of the other.
#[test]
fn another_route_s_fallback_and_index_lead_to_a_program() {
    let application = Backend::listen();
    let more =
        "\n[[site.route]]\nregex = '\\.php$'\nroot = \"www\"\nbackend = \"php\"\nfastcgi = {}\n";
    let setup = Setup::default()
        .route("index = [\"index.php\"]\nfallback = \"/index.php\"\nfallback_for_folders = false")
        .more(more)
        .more(&backend("php", "protocol = \"fastcgi\"", &[application.address()]));
    let kettle = Kettle::start(with_files(setup));
    let mut client = Dialer::default().connect(kettle.address());
    for method in ["GET", "POST", "PUT", "OPTIONS"] {
        for (target, program) in [
            ("/", "/index.php"),
            ("/wp-json/x", "/index.php"),
            ("/wp-admin/", "/wp-admin/index.php"),
        ] {
            assert_eq!(
                runs(&mut client, &application, method, target),
                program,
                "{method} {target}"
            );
        }
    }
    client.send(&request("POST", "/b.html", "")).unwrap();
    assert_eq!(client.response().status, 405);
    assert_eq!(client.get("/none.php").status, 404);
    assert_eq!(client.get("/b.html").body, b"<p>b");
}

#[test]
fn a_program_needs_no_file_where_the_operator_names_it() {
    let application = Backend::listen();
    let more = "\n[[site.route]]\nprefix = \"/git\"\nbackend = \"php\"\n[site.route.fastcgi]\npath_info = true\n\
                script = \"/usr/lib/git-core/git-http-backend\"\nparams = { GIT_PROJECT_ROOT = \"/srv/git\" }\n\
                [[site.route]]\nprefix = \"/app\"\nbackend = \"php\"\n\
                [[site.route]]\nregex = '^/by/([a-z]+)(/.*)$'\nbackend = \"php\"\n[site.route.fastcgi]\n\
                params = { PATH_INFO = \"{2}\", NAME = \"{1}\" }\n\
                [[site.route]]\nprefix = \"/cgit\"\nroot = \"www\"\nbackend = \"php\"\n[site.route.fastcgi]\n\
                script = \"/usr/lib/cgit/cgit.cgi\"\nextensions = [\".pl\"]\n";
    let settings = "protocol = \"fastcgi\"";
    let setup =
        Setup::default().more(more).more(&backend("php", settings, &[application.address()]));
    let kettle = Kettle::start(setup.file("www/cgit.css", "css").file("www/cgit.cgi", SOURCE));
    let told = |target: &str| {
        let mut client = asked_for(&kettle, target);
        let asked = answer(&mut application.accept(), "Content-Length: 0\n\n");
        assert_eq!(client.response().status, 200);
        ["SCRIPT_FILENAME", "SCRIPT_NAME", "PATH_INFO", "DOCUMENT_ROOT"]
            .map(|name| asked.params.get(name).map_or("-".to_owned(), String::clone))
    };
    let git = "/usr/lib/git-core/git-http-backend";
    assert_eq!(told("/git/a.git/info/refs"), [git, "/git", "/a.git/info/refs", "-"]);
    assert_eq!(told("/git"), [git, "/git", "", "-"]);
    assert_eq!(told("/app/x.php/y"), ["-", "/app/x.php/y", "-", "-"]);
    assert_eq!(told("/by/a/c"), ["-", "/by/a/c", "/c", "-"]);
    let root = kettle.folder.path("www").display().to_string();
    assert_eq!(told("/cgit/repo/tree"), ["/usr/lib/cgit/cgit.cgi", "/cgit/repo/tree", "-", &root]);
    let mut client = Dialer::default().connect(kettle.address());
    assert_eq!(client.get("/cgit/cgit.css").body, b"css");
    assert_eq!(told("/cgit/cgit.cgi")[1], "/cgit/cgit.cgi", "it is run, and not sent");
}
