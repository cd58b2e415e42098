//! Configurations and requests by chance, each the same for the same seed.

use std::fmt;
use std::net::SocketAddr;

/// SplitMix64.
pub(super) struct Random {
    state: u64,
    /// True if it says what earlier seeds did not: each is the same for ever.
    has_more: bool,
}

/// An nginx.conf, in which `ADDRESS`, `FOLDER`, `BACKEND` and `STREAM0` stand for what they are.
pub(super) struct Configuration {
    text: String,
    streams: usize,
}

pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) host: &'static str,
    target: String,
}

impl Configuration {
    pub(super) fn streams(&self, address: impl Fn() -> SocketAddr) -> Vec<SocketAddr> {
        (0..self.streams).map(|_| address()).collect()
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Request {
    pub(super) fn get(host: &'static str, target: &str) -> Self {
        Self { method: "GET", host, target: target.to_owned() }
    }

    /// True if its path is not the one that it stands for.
    pub(super) fn is_resolved(&self) -> bool {
        ["//", "/.", "%"].iter().any(|part| self.target.contains(part))
    }

    pub(super) fn is_for_folder(&self) -> bool {
        self.target.split('?').next().is_some_and(|path| path.ends_with('/'))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let Self { method, host, target } = self;
        let body = if *method == "POST" { "Content-Length: 0\r\n" } else { "" };
        format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{body}\r\n")
            .into_bytes()
    }
}

impl fmt::Display for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} of {}", self.method, self.target, self.host)
    }
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed, has_more: seed > OLD_SEEDS }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the lines below this head of the texts; `-` stands for nothing.
    fn one_of(&mut self, head: &str) -> &'static str {
        let lists = TEXTS.split("== ").filter_map(|list| list.split_once('\n'));
        let (_, lines) = lists.into_iter().find(|(known, _)| *known == head).unwrap();
        let lines: Vec<&str> = lines.lines().collect();
        lines[self.below(lines.len())].trim_start_matches('-')
    }

    pub(super) fn configuration(&mut self) -> Configuration {
        let mut text = "PROCESS\nhttp {\n    access_log off;\n    TEMPORARY\n".to_owned();
        text.push_str("    chunked_transfer_encoding off;\n    ssl_protocols TLSv1.2 TLSv1.3;\n");
        for table in ["types", "default types", "whole"] {
            text.push_str(&format!("    {}\n", self.one_of(table)));
        }
        let servers = 1 + usize::from(self.is(40));
        for number in 0..servers {
            text.push_str(&self.server(number));
        }
        text.push_str("}\n");
        let streams = if self.is(25) { 1 + self.below(2) } else { 0 };
        if streams > 0 {
            let guard = self.one_of("stream guards");
            text.push_str(&format!("stream {{\n    {guard}\n"));
            for number in 0..streams {
                let own = self.one_of("stream guards");
                text.push_str(&format!(
                    "    server {{ listen STREAM{number}; {own} proxy_pass BACKEND; }}\n"
                ));
            }
            text.push_str("}\n");
        }
        Configuration { text, streams }
    }

    fn server(&mut self, number: usize) -> String {
        let name = ["a.example", "b.example"][number];
        let default = if self.is(20) && number == 1 { " default_server" } else { "" };
        let mut text = format!(
            "    server {{\n        listen ADDRESS ssl{default};\n        server_name {name};\n        \
             ssl_certificate ssl/example.crt;\n        ssl_certificate_key ssl/example.key;\n"
        );
        if self.is(90) {
            text.push_str("        root FOLDER/www;\n");
        }
        for _ in 0..self.below(3) {
            text.push_str(&format!("        {}\n", self.one_of("server words")));
        }
        if self.has_more && self.is(40) {
            text.push_str(&format!("        {}\n", self.one_of("unsaid")));
        }
        text.push_str("        location @app { proxy_pass http://BACKEND; }\n");
        let mut known = Vec::new();
        for _ in 0..self.below(6) {
            text.push_str(&self.location(&mut known, "", 2));
        }
        if self.has_more && self.is(30) {
            text.push_str(&format!("        {}\n", self.one_of("odd locations")));
        }
        text + "    }\n"
    }

    /// A location that no other one beside it is like.
    fn location(&mut self, known: &mut Vec<&'static str>, outer: &str, depth: usize) -> String {
        let path = self.one_of("locations");
        let bare = path.trim_start_matches(['^', '~', '=', ' ']);
        let is_inside = bare.starts_with(outer) || path.starts_with('~');
        if known.contains(&bare) || !is_inside {
            return String::new();
        }
        known.push(bare);
        let indent = "    ".repeat(4 - depth);
        let mut text = format!("{indent}location {path} {{\n");
        for _ in 0..self.below(3) {
            text.push_str(&format!("{indent}    {}\n", self.one_of("words")));
        }
        if depth > 1 && self.is(15) && !path.starts_with('=') {
            text.push_str(&self.location(&mut Vec::new(), bare.trim_end_matches('$'), depth - 1));
        }
        text + &format!("{indent}}}\n")
    }

    pub(super) fn request(&mut self) -> Request {
        let method = self.one_of("methods");
        let host = self.one_of("hosts");
        let mut target = self.one_of("targets").to_owned();
        if self.is(6) {
            target.push_str("?x=1");
        }
        Request { method, host, target }
    }
}

/// The last seed for which configurations have nothing of what is unsaid.
const OLD_SEEDS: u64 = 1_795_946_000_000_000;

/// Lists, each with its head. A line that stands twice is chosen twice as often.
const TEXTS: &str = include_str!("random.txt");
