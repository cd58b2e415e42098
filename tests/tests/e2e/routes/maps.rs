//! What maps say in headers of responses, in redirects and in what chooses a route.

use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;

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
