//! What answering costs: nanoseconds from a parsed head to a response, without any connection.
//!
//! `cargo run --release -p kettle-server --example answer_cost`

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use kettle_config::{Coding, Config};
use kettle_http::HeadLimits;
use kettle_http::h1::parse::{ParseRequest, parse_request};
use kettle_server::files::handler::Files;
use kettle_server::guard::Guards;
use kettle_server::metrics::WorkerMetrics;
use kettle_server::request::{Head, Request};
use kettle_server::respond::{Responder, respond};
use kettle_server::route::Router;
use kettle_server::upstream::Upstreams;
use kettle_tls::stream::Received;

/// A browser's headers; the most a client usually sends.
const FIELDS: &str = "Host: localhost\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:145.0) \
    Gecko/20100101 Firefox/145.0\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,\
    */*;q=0.8\r\nAccept-Language: en-GB,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
    Connection: keep-alive\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n\
    Sec-Fetch-Site: none\r\n\r\n";
/// curl's headers.
const FEW_FIELDS: &str = "Host: localhost\r\nUser-Agent: curl/8.14.1\r\nAccept: */*\r\n\r\n";
const ROUNDS: u32 = 400_000;
/// The best of several runs is the one least disturbed.
const RUNS: u32 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("1k.html"), vec![b'x'; 1024])?;
    std::fs::write(folder.path().join("1m.bin"), vec![b'x'; 1024 * 1024])?;
    let plain = config(folder.path());
    let mut negotiating = config(folder.path());
    for site in &mut negotiating.sites {
        for route in &mut site.routes {
            route.precompressed = vec![Coding::Br, Coding::Zstd, Coding::Gzip];
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        measure("1 KiB in memory, curl", &plain, "GET /1k.html", FEW_FIELDS).await;
        measure("1 KiB in memory, browser", &plain, "GET /1k.html", FIELDS).await;
        measure("1 KiB in memory, negotiated", &negotiating, "GET /1k.html", FIELDS).await;
        measure("1 MiB open file", &plain, "GET /1m.bin", FEW_FIELDS).await;
        measure("404", &plain, "GET /none", FEW_FIELDS).await;
    });
    Ok(())
}

fn config(folder: &Path) -> Config {
    let mut config = Config::for_folder(folder, ([127, 0, 0, 1], 8443).into());
    config.limits.revalidate = std::time::Duration::from_secs(3600);
    config
}

async fn measure(what: &str, config: &Config, request_line: &str, fields: &str) {
    let Ok(routes) = Router::build(config, &Upstreams::default(), &Default::default(), None) else {
        eprintln!("cannot open the folder");
        return;
    };
    let files = Files::new(&config.limits, Arc::new(WorkerMetrics::default()));
    let responder = Responder { files, guards: Guards::default(), pool: Rc::default() };
    let bytes = format!("{request_line} HTTP/1.1\r\n{fields}").into_bytes();
    let Ok(ParseRequest::Complete { head, .. }) = parse_request(&bytes, &HeadLimits::default())
    else {
        eprintln!("not a request: {}", bytes.escape_ascii());
        return;
    };
    let mut head = Box::new(head.moved_to(()).moved_to(Received::from(bytes)));
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let nanoseconds;
        (nanoseconds, head) = run(&responder, &routes, head).await;
        best = best.min(nanoseconds);
    }
    println!("{what:30} {best:8.0} ns");
}

async fn run(responder: &Responder, routes: &Router, head: Box<Head>) -> (f64, Box<Head>) {
    let mut request = Request::without_body(head, Some("localhost"));
    let began = Instant::now();
    for _ in 0..ROUNDS {
        black_box(respond(responder, routes, &mut request).await);
    }
    (began.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS), request.head)
}
