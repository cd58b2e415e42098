//! The command of docs/http.md that signs a URL, run as it stands there.

use super::*;

#[test]
fn the_command_of_the_manual_signs_a_url() {
    let page = include_str!("../../../../docs/http.md");
    let command = page.lines().find(|line| line.starts_with("e=$(")).unwrap();
    let secret = "0123456789abcdef0123456789abcdef";
    let setup = Setup::default().file("www/file.iso", "content").file("secret", secret);
    let setup = setup.route("prefix = \"/files\"\nsigned_urls = { secret = \"secret\" }");
    let kettle = Kettle::start(setup);
    let secret = kettle.folder.path("secret").display().to_string();
    let command = command.replace("/etc/kettle/url.secret", &secret);
    let url = Tool::new("sh").args(["-c", &command]).succeed();
    let target = url.trim().strip_prefix("https://example.org").unwrap().to_owned();
    assert_eq!(kettle.curl(&["--fail"], &target).succeed(), "content");
    assert_eq!(kettle.curl_status(&[], "/files/file.iso"), "403");
    assert_eq!(kettle.entry("/files/file.iso").text("refused"), "no-signature");
}
