//! Texts that are compressed on their way.

use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;

#[test]
fn curl_unpacks_what_it_gets() {
    let text = "a line of text\n".repeat(500);
    let kettle = Kettle::start(
        Setup::default().file("www/a.txt", text.as_str()).route("compress = [\"gzip\"]"),
    );
    assert_eq!(kettle.curl(&["--compressed", "--fail"], "/a.txt").succeed(), text);
    assert!(kettle.entry("/a.txt").number("body_bytes") < 500);
    assert_eq!(kettle.curl(&["--compressed", "--range", "2-5"], "/a.txt").succeed(), "line");
}
