//! Clients that are sent elsewhere, and files that are found under other names.

use kettle_tests::http::Connection;
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;
use kettle_tests::suite::TLS13_AES_128;

#[test]
fn curl_follows_redirects_and_sees_nothing_of_rewrites() {
    let kettle = Kettle::start(
        Setup::default()
            .file("www/new/a b", "content")
            .route("redirect = [{ from = \"/old/**\", to = \"/new/{1}\", status = 301 }]")
            .route("rewrite = [{ from = \"/hidden/*\", to = \"/new/{1}\" }]")
            .more("[[site.route]]\nprefix = \"/away\"\nredirect = [{ to = \"https://{host}:9{path}\" }]\n"),
    );
    let words = ["--location", "--fail", "--write-out", " %{num_redirects} %{num_connects}"];
    assert_eq!(kettle.curl(&words, "/old/a%20b").succeed(), "content 1 1");
    assert_eq!(kettle.curl(&words, "/hidden/a%20b").succeed(), "content 0 1");
    let asked = ["--write-out", "%{http_code} %{redirect_url}", "--data", "body"];
    let away = kettle.curl(&asked, "/away/x?y=1").succeed();
    assert_eq!(away, "302 https://localhost:9/away/x?y=1");
}

#[test]
fn the_guard_of_another_route_is_asked_where_a_rewrite_leads_to_it() {
    let settings = "rewrite = [{ from = \"/download/**\", to = \"/{1}\" }]";
    let guarded = "[[site.route]]\nprefix = \"/private\"\nroot = \"www/private\"\n\
                   deny = [\"0.0.0.0/0\", \"::/0\"]\n";
    let setup = Setup::default().route(settings).more(guarded);
    let setup = setup.file("www/a", "content").file("www/private/secret", "secret");
    let kettle = Kettle::start(setup);
    let mut client = kettle.connect(TLS13_AES_128);
    assert_eq!(client.get("/download/a").body, b"content");
    assert_eq!(client.get("/private/secret").status, 403);
    for around in ["/download/private/secret", "/download//private/./secret", "/download/private"] {
        assert_eq!(client.get(around).status, 403, "{around}");
    }
}

#[test]
fn a_rewrite_to_a_folder_tells_nobody_where_it_leads() {
    let settings = "listing = true\nrewrite = [{ from = \"/to/*\", to = \"/real/{1}\" }, \
                    { from = \"/to/*/\", to = \"/real/{1}/\" }]";
    let setup = Setup::default().file("www/real/page/index.html", "page");
    let setup = setup.file("www/real/files/secret-name", "x").route(settings);
    let kettle = Kettle::start(setup);
    let mut client = kettle.connect(TLS13_AES_128);
    for (target, status) in
        [("/to/page", 404), ("/to/page/", 200), ("/to/files", 404), ("/to/files/", 403)]
    {
        let response = client.get(target);
        assert_eq!(response.status, status, "{target}");
        assert!(!response.head.contains("real"), "{}", response.head);
        assert!(!String::from_utf8_lossy(&response.body).contains("secret-name"));
    }
}
