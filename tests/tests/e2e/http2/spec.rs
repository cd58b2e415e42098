//! What other people's suites and clients make of it.

use std::process::{Command, Stdio};

use kettle_tests::environment::skip;
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;
use kettle_tests::tool::Tool;

fn is_here(program: &str, asking: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(asking).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn start() -> Kettle {
    let setup = Setup::default().listener("http2 = true").sizes(&[1_000, 1 << 20]);
    Kettle::start(setup.more(ANY_NAME))
}

/// They ask for addresses.
const ANY_NAME: &str = "[[site]]
names = [\"_\"]
[[site.certificate]]
chain = \"localhost.pem\"
key = \"localhost.key\"
[[site.route]]
root = \"www\"
";

#[test]
fn h2spec_finds_nothing_even_where_it_is_strict() {
    if !is_here("h2spec", "--version") {
        let command = "go install github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible";
        return skip(&format!("no h2spec here ({command})"));
    }
    let kettle = start();
    let address = kettle.address();
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let words = ["--strict", "--tls", "--insecure", "--host", &host, "--port", &port];
    // A stream that is over before h2spec has sent all it wanted to cannot end in the error it waits for.
    let ended = Tool::new("h2spec").args(words).args(["--path", "/1048576"]).output();
    let text = ended.text();
    let last = text.lines().rev().find(|line| line.contains(" tests, ")).unwrap_or_default();
    assert!(ended.status.success() && last.contains(", 0 failed"), "{text}");
    assert!(!last.starts_with("0 tests"), "{last}");
}

#[test]
fn h2load_gets_each_of_many_answers_over_few_connections() {
    if !is_here("h2load", "--version") {
        return skip("no h2load here (nghttp2-client)");
    }
    let kettle = start();
    let resolved = format!("https://{}/1000", kettle.address());
    let words = ["-n", "5000", "-c", "5", "-m", "100", &resolved];
    let said = Tool::new("h2load").args(words).succeed();
    assert!(said.contains("5000 succeeded, 0 failed, 0 errored, 0 timeout"), "{said}");
    kettle.wait_for_status("/total/http2_streams", 5_000);
}
