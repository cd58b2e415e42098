//! Maps in headers of responses, in redirects and in what chooses a route.

use super::*;

const MAPS: &str = r#"
[[map]]
name = "cors"
of = "{header:origin}"
[map.regex]
'^https://[a-z]+\.good\.example$' = "{0}"

[[map]]
name = "canary"
of = "{cookie:canary}"
values = { yes = "1" }

[[map]]
name = "target"
of = "{path}"
values = { "/old" = "https://b.example/new" }

[[site.route]]
prefix = "/app"
respond = { body = "canary" }
when = [{ of = "{map:canary}", text = "1" }]

[[site.route]]
prefix = "/app"
respond = { body = "stable" }
"#;

#[test]
fn a_file_in_memory_is_told_to_each_origin_apart() {
    let setup = Setup::default().listener("http2 = true").file("www/a", "content");
    let kettle = Kettle::start(
        setup
            .route("headers = { Access-Control-Allow-Origin = \"{map:cors}\" }")
            .route("redirect = [{ to = \"{map:target}\", status = 301 }]")
            .more(MAPS),
    );
    let allowed = |version: &str, origin: &str| {
        let origin = format!("Origin: {origin}");
        let said = "%{http_code} %header{access-control-allow-origin}";
        let words = [version, "--output", "/dev/null", "--header", &origin, "--write-out", said];
        kettle.curl(&words, "/a").succeed()
    };
    for _ in 0..2 {
        for version in ["--http1.1", "--http2"] {
            for origin in ["https://a.good.example", "https://b.good.example"] {
                assert_eq!(allowed(version, origin), format!("200 {origin}"), "{version}");
            }
            assert_eq!(allowed(version, "https://bad.example"), "200 ", "{version}");
        }
    }
    let away = ["--output", "/dev/null", "--write-out", "%{http_code} %{redirect_url}"];
    assert_eq!(kettle.curl(&away, "/old").succeed(), "301 https://b.example/new");
    assert_eq!(kettle.curl(&away, "/a").succeed(), "200 ");
    assert_eq!(kettle.curl(&["--cookie", "canary=yes"], "/app").succeed(), "canary");
    assert_eq!(kettle.curl(&["--cookie", "canary=no"], "/app").succeed(), "stable");
}

/// The settings of both backends, and of a map of these words that chooses among them.
fn choosing(stable: &Backend, canary: &Backend, of: &str) -> String {
    [
        backend("stable", "", &[stable.address()]),
        backend("canary", "", &[canary.address()]),
        format!("\n[[map]]\nname = \"to\"\nof = \"{of}\"\ndefault = \"stable\"\nvalues = {{ yes = \"canary\" }}\n"),
    ]
    .concat()
}

#[test]
fn a_map_chooses_the_backend_of_each_request() {
    let stable = saying("stable");
    let canary = saying("canary");
    let settings = choosing(&stable, &canary, "{cookie:canary}");
    let setup = Setup::default().listener("http2 = true").file("www/files/there", "file");
    let kettle = Kettle::start(
        setup
            .more("[[site.route]]\nprefix = \"/app\"\nbackend = \"{map:to}\"\n")
            .more("[[site.route]]\nprefix = \"/files\"\nroot = \"www/files\"\nmissing = \"backend\"\nbackend = \"{map:to}\"\n")
            .more(&settings),
    );
    for version in ["--http1.1", "--http2"] {
        for (cookie, answer) in
            [("yes", "canary"), ("YES", "canary"), ("no", "stable"), ("", "stable")]
        {
            let cookie = format!("canary={cookie}");
            for more in [&[][..], &["--data", "body"]] {
                let words = [&[version, "--cookie", &cookie], more].concat();
                assert_eq!(kettle.curl(&words, "/app").succeed(), answer, "{words:?}");
                assert_eq!(kettle.curl(&words, "/files/else").succeed(), answer, "{words:?}");
            }
            let words = [version, "--cookie", &cookie];
            assert_eq!(kettle.curl(&words, "/files/there").succeed(), "file", "{words:?}");
        }
    }
    assert_eq!(kettle.curl(&["--cookie", "canary=yes"], "/app/log").succeed(), "canary");
    assert_eq!(kettle.entry("/app/log").text("backend"), "canary");
    let backends = kettle.ctl(&["backends"]).succeed();
    assert!(backends.contains("stable") && backends.contains("canary"), "{backends}");
    kettle.reload_with("values = { yes = \"canary\" }", "values = { yes = \"stable\" }");
    assert_eq!(kettle.curl(&["--cookie", "canary=yes"], "/app").succeed(), "stable");
}

/// The key has what decides: also where a rewrite leads two paths to one, and for clients that ask in other ways for the same.
#[test]
fn backends_that_a_map_chooses_share_no_kept_response() {
    let stable = saying("stable");
    let canary = saying("canary");
    let settings = choosing(&stable, &canary, "{query:canary}{method}{path}");
    let settings = settings.replace("yes =", "\"yesGET/app/x\" = \"canary\", \"POST/app/x\" =");
    let folder = tempfile::tempdir().unwrap();
    let kettle = Kettle::start(
        Setup::default()
            .more("[[site.route]]\nprefix = \"/app\"\nbackend = \"{map:to}\"\ncache = { store = \"main\" }\n")
            .more("rewrite = [{ from = \"/app/y\", to = \"/app/x\" }]\n")
            .more(&settings)
            .more(&format!("[[cache]]\nname = \"main\"\ndirectory = \"{}\"\n", folder.path().display())),
    );
    let ask = |words: &[&str], target: &str| {
        let said = ["--write-out", " %header{cache-status}"];
        kettle.curl(&[words, &said].concat(), target).succeed()
    };
    // The answer to GET is kept for it.
    ask(&["--head"], "/app/x?canary=yes");
    for (target, answer) in
        [("/app/x?canary=yes", "canary"), ("/app/x", "stable"), ("/app/z", "stable")]
    {
        wait_until(target, || ask(&[], target).starts_with(&format!("{answer} kettle; hit")));
    }
    // One key, whichever of both paths is asked for.
    for (target, answer) in [("/app/y?canary=yes", "canary"), ("/app/y", "stable")] {
        assert!(ask(&[], target).starts_with(&format!("{answer} kettle; hit")), "{target}");
    }
    assert!(ask(&["--data", "body"], "/app/x").starts_with("canary "));
}
