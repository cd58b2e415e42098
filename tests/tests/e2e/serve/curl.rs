//! The verdict of curl, the client everybody has.

use super::*;

#[test]
fn curl_downloads_by_every_path() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[1 << 20]));
    for (path, version) in paths_here().iter().zip(["--tlsv1.2", "--tlsv1.3"].iter().cycle()) {
        let highest = if *version == "--tlsv1.2" { "1.2" } else { "1.3" };
        let words = [version, "--tls-max", highest, "--fail"];
        let address = kettle.address_by(path);
        let downloaded = kettle.curl_at(address, &words, "/1048576").output();
        assert!(downloaded.status.success(), "{}", downloaded.stderr);
        assert_same(&downloaded.stdout, &content(1 << 20), path);
    }
}

#[test]
fn curl_reuses_its_connection_follows_redirects_and_resumes() {
    let kettle = Kettle::start(Setup::default().file("www/folder/index.html", "0123456789"));
    let twice = kettle.url("/folder/");
    let words = ["--location", "--write-out", " %{num_connects} ", &twice];
    assert_eq!(kettle.curl(&words, "/folder").succeed(), "0123456789 1 0123456789 0 ");
    assert_eq!(kettle.curl(&["--range", "3-5"], "/folder/").succeed(), "345");
    assert_eq!(kettle.curl(&["--continue-at", "8"], "/folder/").succeed(), "89");
    assert_eq!(kettle.curl(&["--http1.0"], "/folder/").succeed(), "0123456789");
    assert!(kettle.curl(&["--head"], "/folder/").succeed().starts_with("HTTP/1.1 200 OK\r\n"));
}
