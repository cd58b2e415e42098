//! An application whose pages are made in the browser.

use super::*;

#[test]
fn a_folder_without_an_index_gets_403_where_the_fallback_is_not_for_folders() {
    for (setting, expected) in [("", "200"), ("\nfallback_for_folders = false", "403")] {
        let setup = Setup::default().file("www/index.html", "shell").file("www/a/b.txt", "b");
        let kettle = Kettle::start(setup.route(&format!("fallback = \"/index.html\"{setting}")));
        let status = |target| kettle.curl_status(&[], target);
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
        assert_eq!(kettle.curl_status(&[], target), expected, "{target}");
    }
}
