//! Varnish behind hitch, and behind us in its place.

use super::*;

/// Answers everybody with what it was told of him.
const ANSWERING: &str = r#"
vcl 4.1;
import proxy;
backend none none;
sub vcl_recv { return (synth(200)); }
sub vcl_synth {
  set resp.http.told = proxy.alpn() + " " + proxy.authority() + " " + proxy.ssl_version() + " " + proxy.ssl_cipher()
    + " " + proxy.is_ssl() + " " + proxy.client_has_cert_sess();
  return (deliver);
}
"#;

#[test]
fn varnish_logs_of_us_what_it_logs_of_hitch() {
    for program in ["hitch", "varnishd"] {
        if !Path::new("/usr/sbin").join(program).exists() {
            return skip(&format!("{program} is not installed"));
        }
    }
    let place = Place::new();
    let behind = free();
    fs::write(place.path("vcl"), ANSWERING).unwrap();
    let address = format!("{behind},PROXY");
    let words = ["-F", "-j", "none", "-T", "none", "-n", "FOLDER/varnish", "-f", "FOLDER/vcl"];
    let words = words.iter().map(|word| word.replace("FOLDER", place.0.path().to_str().unwrap()));
    let varnish = Tool::new("/usr/sbin/varnishd").args(words).args(["-a", &address]).start();
    wait_until_listening(behind);
    let mut seen = 0;
    let logs = [true, false].map(|is_hitch| {
        let (_server, front) = introducing(&place, is_hitch, behind);
        for suite in suites_for_rsa() {
            let dialer = Dialer::suite(suite).alpn(&["http/1.1"]).server_name("one");
            let response = dialer.connect(front).get("/");
            let told = response.header("told").unwrap_or_default().to_owned();
            assert!(told.starts_with("http/1.1 one TLSv1."), "{told}");
        }
        let expected = seen + LINES;
        let mut lines = Vec::new();
        wait_until("varnish has logged it", || {
            lines = logged(&place);
            lines.len() >= expected
        });
        let mut new = lines.split_off(seen);
        seen += new.len();
        // Sessions are written whenever they end.
        new.sort();
        new
    });
    assert_eq!(logs[0], logs[1]);
    drop(varnish);
}

/// The lines of its log on headers and responses, without the numbers of ports and transactions.
fn logged(place: &Place) -> Vec<String> {
    let words = ["-d", "-g", "raw", "-i", "Proxy,ProxyGarbage", "-I", "RespHeader:told"];
    let folder = place.path("varnish");
    let text = Tool::new("varnishlog").args(["-n"]).args([folder]).args(words).succeed();
    let line = |line: &str| {
        let words: Vec<_> = line.split_whitespace().skip(1).collect();
        match words[..] {
            ["Proxy", side, version, client, _, server, _] => {
                format!("Proxy {side} {version} {client} {server}")
            }
            _ => words.join(" "),
        }
    };
    text.lines().map(line).collect()
}

/// Of two clients: whom the header is for, and what they were answered.
const LINES: usize = 4;
