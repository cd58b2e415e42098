//! The text of cases, read: docs/testing.md says how one is written.

use std::iter::Peekable;
use std::str::Lines;

/// A configuration, what stands beside it, and what is asked.
#[derive(Default)]
pub(super) struct Case {
    pub(super) title: String,
    /// The text within `http`.
    pub(super) config: String,
    pub(super) files: Vec<File>,
    pub(super) backends: Vec<Backend>,
    pub(super) asked: Vec<Ask>,
}

pub(super) struct File {
    pub(super) path: String,
    pub(super) content: Vec<u8>,
    /// Beside it lies the same, compressed.
    pub(super) has_gzip: bool,
    /// It is a symbolic link to this.
    pub(super) link: Option<String>,
}

/// A server behind both, on a port that the configuration names.
pub(super) struct Backend {
    pub(super) port: u16,
    pub(super) replies: Vec<Reply>,
}

/// The answer of a backend where the beginning of a request line, or its target, is this. A star stands for all that follows.
#[derive(Clone, Default)]
pub(super) struct Reply {
    pub(super) to: String,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<String>,
    pub(super) is_chunked: bool,
    /// The connection is closed without an answer.
    pub(super) is_dropped: bool,
}

/// A request, what nginx answers, and what kettle does otherwise.
#[derive(Clone, Default)]
pub(super) struct Ask {
    pub(super) method: String,
    pub(super) scheme: String,
    pub(super) host: String,
    /// The port as the configuration has it.
    pub(super) port: u16,
    pub(super) target: String,
    /// `closed` is a connection that ends without an answer.
    pub(super) status: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) options: Vec<(String, String)>,
    pub(super) differences: Vec<String>,
    pub(super) reason: Option<String>,
}

impl Ask {
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.option(name).is_some()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The request as its line has it.
    pub(super) fn url(&self) -> String {
        let Self { method, scheme, host, port, target, .. } = self;
        let port = match (scheme.as_str(), port) {
            ("http", 80) | ("https", 443) => String::new(),
            _ => format!(":{port}"),
        };
        format!("{method} {scheme}://{host}{port}{target}")
    }

    /// The lines that say how kettle differs.
    pub(super) fn known(&self) -> Vec<String> {
        let differences = self.differences.iter().map(|it| format!("  ~ {it}"));
        differences.chain(self.reason.iter().map(|it| format!("  because {it}"))).collect()
    }

    fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let [method, url, status] = words[..] else {
            panic!("a request is a method, a URL and nginx's status: {line}")
        };
        let (scheme, rest) = url.split_once("://").unwrap_or_else(|| panic!("no URL: {line}"));
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(at);
        let usual = if scheme == "https" { 443 } else { 80 };
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().unwrap()),
            None => (authority, usual),
        };
        let [method, scheme, host, target, status] =
            [method, scheme, host, target, status].map(str::to_owned);
        Self { method, scheme, host, port, target, status, ..Self::default() }
    }
}

/// The cases of a file.
pub(super) fn parse(text: &str) -> Vec<Case> {
    let mut lines = text.lines().peekable();
    let mut cases = Vec::new();
    while let Some(line) = lines.next() {
        let Some(title) = line.strip_prefix("== ") else {
            assert!(cases.is_empty() && is_remark(line), "a case begins with `== `: {line}");
            continue;
        };
        let config = section(&mut lines);
        let mut case = Case { title: title.to_owned(), config, ..Case::default() };
        while let Some(head) = lines.next_if(|line| line.starts_with("-- ")) {
            let body = section(&mut lines);
            match head.splitn(3, ' ').skip(1).collect::<Vec<_>>()[..] {
                ["ask"] => case.asked = asked(&body),
                ["file", path] => case.files.push(file(path, &body)),
                ["backend", port] => case.backends.push(backend(port, &body)),
                _ => panic!("{title}: {head}"),
            }
        }
        assert!(!case.asked.is_empty(), "{title}: nothing is asked");
        cases.push(case);
    }
    cases
}

/// The same text with what is known now of each request in its order, of all cases.
pub(super) fn blessed(text: &str, found: &[Ask]) -> String {
    let mut found = found.iter();
    let mut new = String::new();
    let mut is_asking = false;
    for line in text.lines() {
        if line.starts_with("== ") || line.starts_with("-- ") {
            is_asking = line == "-- ask";
        }
        if is_asking && (line.starts_with("  ~ ") || line.starts_with("  because ")) {
            continue;
        }
        new.push_str(line);
        new.push('\n');
        if is_asking && is_request(line) {
            let ask = found.next().expect("each request has an outcome");
            ask.known().iter().for_each(|line| new.push_str(&format!("{line}\n")));
        }
    }
    new
}

/// All lines up to the next head.
fn section(lines: &mut Peekable<Lines<'_>>) -> String {
    let mut text = String::new();
    while let Some(line) =
        lines.next_if(|line| !line.starts_with("-- ") && !line.starts_with("== "))
    {
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn is_remark(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

fn is_request(line: &str) -> bool {
    !is_remark(line) && !line.starts_with(' ') && line != "-- ask"
}

fn asked(text: &str) -> Vec<Ask> {
    let mut asked: Vec<Ask> = Vec::new();
    for line in text.lines().filter(|line| !is_remark(line)) {
        if is_request(line) {
            asked.push(Ask::parse(line));
            continue;
        }
        let ask = asked.last_mut().unwrap_or_else(|| panic!("no request before {line}"));
        let line = line.trim_start();
        match line.split_once(' ').unwrap_or((line, "")) {
            (">", header) => ask.headers.push(pair(header)),
            ("!", option) => {
                let (name, value) = option.split_once(' ').unwrap_or((option, ""));
                ask.options.push((name.to_owned(), value.to_owned()));
            }
            ("~", difference) => ask.differences.push(difference.to_owned()),
            ("because", reason) => ask.reason = Some(reason.to_owned()),
            _ => panic!("{}: {line}", ask.url()),
        }
    }
    asked
}

/// ` = 5000` behind a path is a length, ` gzip` a compressed file beside it.
fn file(path: &str, text: &str) -> File {
    if let Some((path, bytes)) = path.split_once(" = ") {
        let letters = b"0123456789abcde\n".iter().copied().cycle();
        let content = letters.take(bytes.parse().unwrap()).collect();
        return File { path: path.to_owned(), content, has_gzip: false, link: None };
    }
    let (path, link) = match path.split_once(" -> ") {
        Some((path, link)) => (path, Some(link.to_owned())),
        None => (path, None),
    };
    let content = text.trim_end_matches('\n').as_bytes().to_vec();
    let (path, has_gzip) = match path.strip_suffix(" gzip") {
        Some(path) => (path, true),
        None => (path, false),
    };
    File { path: path.to_owned(), content, has_gzip, link }
}

fn backend(port: &str, text: &str) -> Backend {
    let mut replies: Vec<Reply> = Vec::new();
    for line in text.lines().filter(|line| !is_remark(line)) {
        if !line.starts_with(' ') {
            let (to, status) = line.rsplit_once(' ').unwrap();
            let status = status.parse().unwrap_or_else(|_| panic!("no status: {line}"));
            replies.push(Reply { to: to.to_owned(), status, ..Reply::default() });
            continue;
        }
        let reply = replies.last_mut().unwrap_or_else(|| panic!("no reply before {line}"));
        let line = line.trim_start();
        match line.split_once(' ').unwrap_or((line, "")) {
            (">", header) => reply.headers.push(pair(header)),
            ("!", "chunked") => reply.is_chunked = true,
            ("!", "drop") => reply.is_dropped = true,
            ("|", body) => reply.body = Some(body.replace("\\n", "\n")),
            _ => panic!("{line}"),
        }
    }
    Backend { port: port.parse().unwrap(), replies }
}

fn pair(header: &str) -> (String, String) {
    let (name, value) = header.split_once(':').unwrap_or_else(|| panic!("no header: {header}"));
    (name.to_owned(), value.trim().to_owned())
}
