use std::path::Path;

use super::bed::parse_cpus;
use super::record::Sample;
use super::server::{Program, Setup};
use super::*;

fn config(kind: Kind, program: Program) -> String {
    let setup = Setup {
        kind,
        number: 3,
        workers: 4,
        folder: Path::new("/f"),
        last_site: "b",
        origin: 81,
        hot_memory: "0 B",
    };
    setup.config(program, Path::new("/f/own"), 8443)
}

#[test]
fn configurations_hold_as_much_as_was_asked_for() {
    for (kind, kettle, nginx) in [
        (Kind::Routes, "prefix = \"/r2\"", "location /r2/ { alias /f/site/; }"),
        (Kind::Places, "exact = \"/r2\"", "location = /r2 { alias /f/site/f0; }"),
        (Kind::Expressions, "regex = '\\.x2$'", "location ~ \\.x2$ { return 403; }"),
        (Kind::Redirects, "from = \"/old2\"", "/old2 /new2;"),
        (Kind::Sites, "root = \"/f/site/b\"", "root /f/site/b;"),
        (Kind::Objects, "address = \"127.0.0.1:81\"", "server 127.0.0.1:81;"),
        (Kind::Files, "root = \"/f/site\"", "root /f/site;"),
        (Kind::Programs, "protocol = \"fastcgi\"", "fastcgi_pass plain;"),
        (Kind::Checks, "path = \"/check\"", "auth_request /check;"),
        (Kind::Texts, "compress = [\"gzip\"]", "gzip on;"),
        (Kind::Downloads, "limit_rate = \"4 KiB\"", "limit_rate 4k;"),
    ] {
        for (program, part) in [(Program::Kettle, kettle), (Program::Nginx, nginx)] {
            let text = config(kind, program);
            let settings = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            assert_eq!(text.matches(part).count(), 1, "{text}");
            assert!(settings.into_iter().all(|line| !line.contains('@')), "{text}");
            assert_eq!(text.matches('{').count(), text.matches('}').count(), "{text}");
        }
    }
    let text = config(Kind::Files, Program::Kettle);
    assert!(text.contains("workers = 4") && text.contains("hot_memory = \"0 B\""), "{text}");
    assert!(config(Kind::Files, Program::Nginx).contains("worker_processes 4;"));
}

#[test]
fn the_table_compares_rounds_and_numbers() {
    let sample = |program, number, round, value: f64| {
        let sample = Sample::new("routes of a site", number, (program, round));
        sample.with("cpu_us_per_transaction", value)
    };
    let mut samples = Vec::new();
    for round in 0..3 {
        samples.push(sample(Program::Kettle, 10, round, 8.0));
        samples.push(sample(Program::Nginx, 10, round, 10.0));
        samples.push(sample(Program::Kettle, 10_000, round, 40.0));
    }
    let table = table::render(&samples);
    let lines: Vec<&str> = table.lines().skip(2).collect();
    let eight = "8.00 (8.00 to 8.00) | 10.0 (10.0 to 10.0) | 0.80 (0.80 to 0.80)";
    assert_eq!(
        lines,
        [
            format!("| 10 routes of a site | request (µs) | {eight} |  |"),
            "| 10,000 routes of a site | request (µs) | 40.0 (40.0 to 40.0) |  |  |  |".to_owned(),
            "| routes of a site | 10,000 ÷ 10 | 5.00 (5.00 to 5.00) |  | | ≤ 1.10 missed |"
                .to_owned(),
        ]
    );
}

#[test]
fn a_list_of_processors_is_read() {
    assert_eq!(parse_cpus("0-2,5\n"), [0, 1, 2, 5]);
}
