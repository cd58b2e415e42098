//! Cases in text files: the settings of a site, and what it answers.
//!
//! A case begins with a line `== NAME`. Files beside the usual ones follow as `+ PATH = CONTENT`, or as `+ PATH @ SECONDS = CONTENT`
//! with the time of their last change, and symlinks as `+ PATH -> TARGET`. Then come the settings of the site up to a line `--`, and
//! then requests: `METHOD TARGET | FIELD => STATUS TEXT | EXPECTATION`. Of requests below each other that are to have the same answer
//! only the last one says it. `{etag}` in a field is the tag that the target has. In place of a field, `from ADDRESS` is the client and
//! `sni NAME` the name that its connection was made for, or `-`. A line `! CHANGE` between requests is a change of files or of time.
//! A text is all of a body, and `""` is an empty one. An expectation is `has TEXT`, `lacks TEXT`, the value of a header as
//! `NAME: VALUE` (several lines of it with ` & ` between them, `-` where it is not there, `*` for any) or the log's word as `refusal: WORD` or `user: NAME`.
//! In place of a status, `closed` stands for a connection that ends without a response. Several methods have commas between them.

use std::fs;
use std::net::IpAddr;
use std::time::Duration;

use super::stage::{Reply, Server, set_modified};

#[tokio::test]
async fn routes() {
    hold(include_str!("cases/routes.txt")).await;
}

#[tokio::test]
async fn redirects() {
    hold(include_str!("cases/redirects.txt")).await;
}

#[tokio::test]
async fn files() {
    hold(include_str!("cases/files.txt")).await;
}

#[tokio::test]
async fn changes() {
    hold(include_str!("cases/changes.txt")).await;
}

#[tokio::test]
async fn sites() {
    hold(include_str!("cases/sites.txt")).await;
}

#[tokio::test]
async fn refusals() {
    hold(include_str!("cases/refusals.txt")).await;
}

/// The client of a request, and the fields that it sends.
struct TestClient<'c> {
    address: IpAddr,
    server_name: Option<&'c str>,
    fields: String,
}

impl Default for TestClient<'_> {
    fn default() -> Self {
        let fields = "Host: localhost\r\n".to_owned();
        Self { address: [127, 0, 0, 1].into(), server_name: Some("localhost"), fields }
    }
}

impl TestClient<'_> {
    async fn ask(&self, server: &Server, method: &str, target: &str) -> Reply {
        let text = format!("{method} {target} HTTP/1.1\r\n{}\r\n", self.fields);
        server.send_from(self.address, &text, self.server_name, false).await
    }
}

/// Holds each case of a file. Each in which nothing changes is asked twice: the second time, files are remembered.
async fn hold(cases: &str) {
    for case in format!("\n{cases}").split("\n== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (setup, requests) = rest.split_once("\n--\n").expect(name);
        let server = open(setup);
        let has_changes = requests.lines().any(|line| line.starts_with("! "));
        let mut asked = Vec::new();
        for line in requests.repeat(if has_changes { 1 } else { 2 }).lines() {
            if let Some(change) = line.strip_prefix("! ") {
                make(&server, change);
                continue;
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (request, expected) = line.split_once(" => ").unwrap_or((line, ""));
            asked.push(request);
            if expected.is_empty() {
                continue;
            }
            for request in asked.drain(..) {
                check(&server, request, expected, &format!("{name}: {request}")).await;
            }
        }
    }
}

fn open(setup: &str) -> Server {
    let mut stage = super::routes::stage();
    let is_file = |line: &&str| line.starts_with("+ ");
    for line in setup.lines().filter(is_file) {
        stage = match line[2..].split_once(" = ") {
            Some((path, content)) => {
                let (path, seconds) = path.split_once(" @ ").unwrap_or((path, ""));
                let stage = stage.file(path, content);
                if !seconds.is_empty() {
                    let path = stage.folder.path().join("root").join(path);
                    set_modified(&path, seconds.parse().unwrap());
                }
                stage
            }
            None => {
                let (path, target) = line[2..].split_once(" -> ").expect(line);
                let path = stage.folder.path().join("root").join(path);
                std::os::unix::fs::symlink(target, path).unwrap();
                stage
            }
        };
    }
    let settings: Vec<_> = setup.lines().filter(|line| !is_file(line)).collect();
    stage.settings(&settings.join("\n")).open()
}

fn make(server: &Server, change: &str) {
    let (what, rest) = change.split_once(' ').expect(change);
    let (path, more) = rest.split_once(" = ").or(rest.split_once(" -> ")).unwrap_or((rest, ""));
    let path = server.path(path);
    match what {
        "write" => fs::write(path, more),
        "remove" => fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)),
        "folder" => fs::create_dir(path),
        "rename" => fs::rename(path, server.path(more)),
        "pass" => {
            server.clock.pass(Duration::from_millis(rest.parse().unwrap()));
            Ok(())
        }
        _ => panic!("no such change: {change}"),
    }
    .unwrap();
}

async fn check(server: &Server, request: &str, expected: &str, name: &str) {
    let mut asked = request.split(" | ");
    let (methods, target) = asked.next().and_then(|it| it.split_once(' ')).expect(name);
    let mut client = TestClient::default();
    let mut tag = None;
    for field in asked {
        if let Some(address) = field.strip_prefix("from ") {
            client.address = address.parse().unwrap();
        } else if let Some(name) = field.strip_prefix("sni ") {
            client.server_name = (name != "-").then_some(name);
        } else if field.starts_with("Host: ") {
            client.fields = client.fields.replace("Host: localhost", field);
        } else if field.contains("{etag}") {
            let reply = client.ask(server, "GET", target).await;
            let known = reply.header("etag").expect(name).to_owned();
            client.fields += &(field.replace("{etag}", &known) + "\r\n");
            tag = Some(known);
        } else {
            client.fields += &format!("{field}\r\n");
        }
    }
    if expected == "closed" {
        return assert!(server.closes(target).await, "{name}");
    }
    for method in methods.split(',') {
        let reply = client.ask(server, method, target).await;
        let mut expected = expected.split(" | ");
        let first = expected.next().unwrap();
        let (status, text) = first.split_once(' ').unwrap_or((first, ""));
        assert_eq!(reply.status.to_string(), status, "{name}, {method}");
        let length = reply.header("content-length");
        if method == "HEAD" {
            let get = client.ask(server, "GET", target).await;
            assert!(
                reply.body.is_empty() && (get.status != reply.status || get.head == reply.head)
            );
        } else if let Some(length) = length {
            assert_eq!(length, reply.body.len().to_string(), "{name}");
        }
        if status == "304" {
            assert!(tag.is_none() || reply.header("etag") == tag.as_deref(), "{name}");
        }
        match text {
            "" => {}
            "\"\"" => assert_eq!(reply.text(), "", "{name}, {method}"),
            text => assert_eq!(reply.text(), text, "{name}, {method}"),
        }
        expected.for_each(|expected| check_more(&reply, expected, name));
    }
}

fn check_more(reply: &Reply, expected: &str, name: &str) {
    if let Some(text) = expected.strip_prefix("has ") {
        assert!(reply.text().contains(text), "{name}: {}", reply.text());
    } else if let Some(text) = expected.strip_prefix("lacks ") {
        assert!(!reply.text().contains(text), "{name}: {}", reply.text());
    } else {
        let (header, value) = expected.split_once(": ").expect(name);
        let is_of_it = |line: &str| line.strip_prefix(&format!("{header}: ")).map(str::to_owned);
        let mut found: Vec<_> = reply.head.lines().filter_map(is_of_it).collect();
        match header {
            "refusal" => found.extend(reply.notes.refusal.map(str::to_owned)),
            "user" => found.extend(reply.notes.user.as_deref().map(str::to_owned)),
            _ => {}
        }
        let found = if found.is_empty() { "-".to_owned() } else { found.join(" & ") };
        let is_expected = if value == "*" { found != "-" } else { found == value };
        assert!(is_expected, "{name}: {header}: {found}, and not {value}");
    }
}
