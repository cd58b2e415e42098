//! The plain HTTP endpoint that Prometheus scrapes: `GET /metrics`, one request a connection, in the
//! format that the scraper asks for.
//!
//! It runs on the main thread. Every connection has a deadline, and the number of open ones is bounded.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kettle_http::h1::parse::{ParseRequest, parse_request};
use kettle_http::h1::write::{write_field, write_field_u64, write_status_line};
use kettle_http::{HeadLimits, Method};
use kettle_runtime::metrics::{Metrics, render};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::accept::{Bounds, Spoken, accept_each};
use crate::text_format::text_format;

/// Answers scrapes for as long as it is polled. `started` is when the server was.
///
/// # Errors
///
/// Fails if the listener cannot be handed to the runtime.
pub async fn serve(
    listener: std::net::TcpListener,
    metrics: Arc<Metrics>,
    started: Instant,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let accept = async || listener.accept().await.map(|(stream, _)| stream);
    let answer = |stream, spoken| answer(stream, spoken, Arc::clone(&metrics), started);
    match accept_each("the metrics endpoint", &BOUNDS, accept, answer).await {}
}

async fn answer(
    mut stream: TcpStream,
    spoken: Spoken,
    metrics: Arc<Metrics>,
    started: Instant,
) -> io::Result<()> {
    let numbers = || render(&metrics, started.elapsed()).unwrap_or_default();
    let Some(response) = timeout(HEAD_TIME_MAX, ask(&mut stream, numbers)).await?? else {
        return Ok(());
    };
    spoken.note();
    let write = async {
        stream.write_all(&response).await?;
        stream.shutdown().await
    };
    timeout(RESPONSE_TIME_MAX, write).await?
}

/// The response to what a client asks; none if it leaves before it has.
async fn ask(stream: &mut TcpStream, numbers: impl Fn() -> String) -> io::Result<Option<Vec<u8>>> {
    let mut request = Vec::with_capacity(HEAD_BYTES_MAX);
    loop {
        match respond(&request, &numbers) {
            Some(response) => return Ok(Some(response)),
            None if request.len() >= HEAD_BYTES_MAX => {
                return Ok(Some(plain(431, "request too large\n")));
            }
            None => {}
        }
        let mut bounded = (&mut *stream).take((HEAD_BYTES_MAX - request.len()) as u64);
        if bounded.read_buf(&mut request).await? == 0 {
            return Ok(None);
        }
    }
}

/// The response, once the request's head is complete.
fn respond(request: &[u8], render: impl FnOnce() -> String) -> Option<Vec<u8>> {
    let limits = HeadLimits { head_bytes_max: HEAD_BYTES_MAX, ..HeadLimits::default() };
    let head = match parse_request(request, &limits) {
        Ok(ParseRequest::Partial) => return None,
        Ok(ParseRequest::Complete { head, .. }) => head,
        Err(error) => return Some(plain(error.status(), "bad request\n")),
    };
    let path = head.raw_target().split('?').next();
    let mut response = match (head.method(), path) {
        (Method::Get | Method::Head, Some("/metrics")) => {
            let accepted = head.header_values("accept").any(|field| contains(field, OPEN_METRICS));
            match accepted {
                true => message(200, OPEN_METRICS_TYPE, render().as_bytes()),
                false => message(200, TEXT_FORMAT_TYPE, text_format(&render()).as_bytes()),
            }
        }
        (Method::Get | Method::Head, _) => plain(404, "the metrics are at /metrics\n"),
        _ => plain(405, "only GET and HEAD are answered\n"),
    };
    if head.method() == Method::Head
        && let Some(end) = response.windows(4).position(|bytes| bytes == b"\r\n\r\n")
    {
        response.truncate(end + 4);
    }
    Some(response)
}

fn contains(field: &[u8], media_type: &str) -> bool {
    field.windows(media_type.len()).any(|bytes| bytes.eq_ignore_ascii_case(media_type.as_bytes()))
}

fn plain(status: u16, text: &str) -> Vec<u8> {
    message(status, "text/plain; charset=utf-8", text.as_bytes())
}

fn message(status: u16, content_type: &str, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 256);
    write_status_line(&mut out, status);
    write_field(&mut out, "content-type", content_type.as_bytes());
    write_field_u64(&mut out, "content-length", body.len() as u64);
    write_field(&mut out, "connection", b"close");
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    out
}

/// The format that knows `info`, and that a scraper has to ask for.
const OPEN_METRICS: &str = "application/openmetrics-text";
const OPEN_METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT_FORMAT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const HEAD_BYTES_MAX: usize = 8 * 1024;

/// A scrape is short.
const BOUNDS: Bounds = Bounds {
    connections_max: 8,
    lifetime: HEAD_TIME_MAX.saturating_add(RESPONSE_TIME_MAX),
    makes_way_after: Some(Duration::from_secs(1)),
};

/// A scraper sends its request at once.
const HEAD_TIME_MAX: Duration = Duration::from_secs(2);
/// Some hundred KB, over whatever network.
const RESPONSE_TIME_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::respond;

    fn response_to(request: &str) -> Option<String> {
        respond(request.as_bytes(), || "numbers\n".to_owned())
            .map(|response| String::from_utf8(response).unwrap())
    }

    const OPEN: &str = "Accept: application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1\r\n";

    #[test]
    fn a_scrape_gets_the_numbers_in_the_format_it_asks_for() {
        for (accept, content_type) in [
            ("", "text/plain; version=0.0.4"),
            ("Accept: */*\r\n", "text/plain; version=0.0.4"),
            (OPEN, "application/openmetrics-text; version=1.0.0"),
        ] {
            let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{accept}\r\n");
            let response = response_to(&request).unwrap();
            assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
            assert!(response.contains(&format!("content-type: {content_type}")), "{response}");
            assert!(response.ends_with("\r\n\r\nnumbers\n"), "{response}");
        }
    }

    #[test]
    fn head_gets_the_head_alone() {
        let of = |method: &str| {
            response_to(&format!("{method} /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")).unwrap()
        };
        assert_eq!(format!("{}numbers\n", of("HEAD")), of("GET"));
    }

    #[test]
    fn half_a_request_is_waited_for() {
        assert_eq!(response_to("GET /metrics HTTP/1.1\r\nHost: loc"), None);
    }

    #[test]
    fn anything_else_is_refused() {
        for (request, status) in [
            ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
            ("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
            ("nonsense\r\n\r\n", "400"),
        ] {
            let response = response_to(request).unwrap();
            assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        }
    }
}
