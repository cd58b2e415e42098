//! Cases in text files: the settings of a site, and what it answers.
//!
//! A case begins with a line `== NAME`. Files beside the usual ones follow as `+ PATH = CONTENT`, symlinks as `+ PATH -> TARGET`,
//! then the settings of the site up to a line `--`, and then requests: `METHOD TARGET | FIELD => STATUS TEXT | EXPECTATION`.
//! A text is all of a body, and `""` is an empty one. An expectation is `has TEXT`, `lacks TEXT`, the value of a header as
//! `NAME: VALUE` (several lines of it with ` & ` between them, `-` where it is not there) or the log's word as `refusal: WORD`.
//! In place of a status, `closed` stands for a connection that ends without a response. Several methods have commas between them.

use super::stage::{Reply, Server};

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

/// Holds each case of a file. Each is asked twice: the second time, files are remembered.
async fn hold(cases: &str) {
    for case in format!("\n{cases}").split("\n== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (setup, requests) = rest.split_once("\n--\n").expect(name);
        let server = open(setup);
        for line in [requests, requests].concat().lines() {
            if !line.is_empty() && !line.starts_with('#') {
                check(&server, line, &format!("{name}: {line}")).await;
            }
        }
    }
}

fn open(setup: &str) -> Server {
    let mut stage = super::routes::stage();
    let is_file = |line: &&str| line.starts_with("+ ");
    for line in setup.lines().filter(is_file) {
        stage = match line[2..].split_once(" = ") {
            Some((path, content)) => stage.file(path, content),
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

async fn check(server: &Server, line: &str, name: &str) {
    let (asked, expected) = line.split_once(" => ").expect(name);
    let mut asked = asked.split(" | ");
    let (methods, target) = asked.next().and_then(|it| it.split_once(' ')).expect(name);
    let fields: Vec<_> = asked.collect();
    if expected == "closed" {
        return assert!(server.closes(target).await, "{name}");
    }
    for method in methods.split(',') {
        let reply = server.ask(method, target, &fields).await;
        let mut expected = expected.split(" | ");
        let first = expected.next().unwrap();
        let (status, text) = first.split_once(' ').unwrap_or((first, ""));
        assert_eq!(reply.status.to_string(), status, "{name}, {method}");
        if let Some(length) = reply.header("content-length")
            && method == "GET"
        {
            assert_eq!(length, reply.body.len().to_string(), "{name}");
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
        if header == "refusal" {
            found.extend(reply.notes.refusal.map(str::to_owned));
        }
        let found = if found.is_empty() { "-".to_owned() } else { found.join(" & ") };
        assert_eq!(found, value, "{name}: {}", reply.head);
    }
}
