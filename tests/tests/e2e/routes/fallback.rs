//! An application whose pages are made in the browser.

use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;

#[test]
fn curl_gets_the_shell_of_an_application_at_every_path_of_it() {
    let setup = Setup::default().file("www/index.html", "shell").file("www/app.js", "code");
    let kettle = Kettle::start(setup.route("fallback = \"/index.html\""));
    let again = kettle.url("/users/8?tab=1");
    let words = ["--fail", "--write-out", " %{http_code} %{num_connects} ", &again];
    assert_eq!(kettle.curl(&words, "/users/7").succeed(), "shell 200 1 shell 200 0 ");
    assert_eq!(kettle.curl(&["--range", "1-2"], "/users/7").succeed(), "he");
    assert_eq!(kettle.curl(&["--fail"], "/app.js").succeed(), "code");
    assert!(kettle.curl(&["--head"], "/none").succeed().starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn a_folder_without_an_index_gets_403_where_the_fallback_is_not_for_folders() {
    for (setting, expected) in [("", "200"), ("\nfallback_for_folders = false", "403")] {
        let setup = Setup::default().file("www/index.html", "shell").file("www/a/b.txt", "b");
        let kettle = Kettle::start(setup.route(&format!("fallback = \"/index.html\"{setting}")));
        let status = |target| {
            kettle.curl(&["--output", "/dev/null", "--write-out", "%{http_code}"], target).succeed()
        };
        assert_eq!(status("/a/"), expected, "{setting}");
        assert_eq!([status("/"), status("/a/none"), status("/none/")], ["200"; 3], "{setting}");
    }
}

#[test]
fn a_page_answers_for_no_script_that_is_missing() {
    let setup = Setup::default().file("www/index.html", "shell").file("www/app.js", "code");
    let route = "fallback = \"/index.html\"\nfallback_except = [\"*.js\"]";
    let kettle = Kettle::start(setup.route(route));
    for (target, expected) in
        [("/app.js", "200"), ("/none.js", "404"), ("/NONE.JS", "404"), ("/none", "200")]
    {
        let words = ["--output", "/dev/null", "--write-out", "%{http_code}"];
        assert_eq!(kettle.curl(&words, target).succeed(), expected, "{target}");
    }
}
