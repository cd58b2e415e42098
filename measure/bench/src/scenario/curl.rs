//! A download by curl, as people try it by hand, told as the outcome of a load.

use std::process::Command;
use std::time::Duration;

use hdrhistogram::Histogram;
use kettle_loadgen::client::Outcome;
use kettle_loadgen::client::outcome::Delivered;
use kettle_loadgen::load::Load;
use kettle_tls::Version;

use super::error::BenchError;
use crate::peers::subject::CertificateKey;
use crate::peers::{self, openssl};
use crate::word::Word;

/// Downloads once what the load asks for, on its processors.
pub fn download(load: &Load) -> Result<Outcome, BenchError> {
    let output = peers::on_cpus(&load.cpus, || command(load).output());
    let output = output.map_err(|error| {
        BenchError::Refused(format!("cannot run curl: {error}; apt-get install curl"))
    })?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(BenchError::Failed(format!("curl: {complaint}")));
    }
    let seen = parse(&said)
        .ok_or_else(|| BenchError::Failed(format!("curl wrote what cannot be read: {said}")))?;
    outcome(load, &seen)
}

/// The output of curl after a download.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    status: u16,
    bytes: u64,
    total: f64,
    first_byte: f64,
}

fn command(load: &Load) -> Command {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--insecure", "--http1.1", "--output", "/dev/null"]);
    curl.args(["--write-out", "%{http_code} %{size_download} %{time_total} %{time_starttransfer}"]);
    curl.args(["--max-time", &load.timeout.as_secs().to_string()]);
    let target = load.target.ip();
    let port = load.target.port();
    curl.args(["--resolve", &format!("{}:{port}:{target}", load.host)]);
    let scheme = if let Some(offer) = &load.tls {
        let version = offer.version.word();
        curl.args([&format!("--tlsv{version}"), "--tls-max", version]);
        match offer.version {
            Version::Tls12 => {
                // Whichever of them the certificate is for.
                let suites = [CertificateKey::P256, CertificateKey::Rsa2048];
                let suites = suites.map(|key| openssl::suite_tls12(offer.cipher, key));
                curl.args(["--ciphers", &suites.join(":")])
            }
            Version::Tls13 => curl.args(["--tls13-ciphers", openssl::suite_tls13(offer.cipher)]),
        };
        curl.args(["--curves", offer.group.title()]);
        "https"
    } else {
        "http"
    };
    curl.arg(format!("{scheme}://{}:{port}{}", load.host, load.path));
    curl
}

fn parse(text: &str) -> Option<Seen> {
    let mut words = text.split_ascii_whitespace();
    Some(Seen {
        status: words.next()?.parse().ok()?,
        bytes: words.next()?.parse().ok()?,
        total: words.next()?.parse().ok()?,
        first_byte: words.next()?.parse().ok()?,
    })
}

fn outcome(load: &Load, seen: &Seen) -> Result<Outcome, BenchError> {
    let microseconds = |seconds: f64| (seconds * 1e6) as u64;
    let longest = microseconds(seen.total.max(seen.first_byte)).max(2);
    let histogram = Histogram::new_with_max(longest, HISTOGRAM_DIGITS);
    let histogram = histogram.map_err(BenchError::bug)?;
    let mut outcome = Outcome::nothing(histogram);
    outcome.latency.saturating_record(microseconds(seen.total));
    outcome.first_byte.saturating_record(microseconds(seen.first_byte));
    outcome.elapsed = Duration::from_secs_f64(seen.total.max(0.0));
    outcome.attempted = 1;
    outcome.handshakes.full = u64::from(load.tls.is_some());
    if seen.status == 200 && load.expect.body_bytes.is_none_or(|it| it == seen.bytes) {
        outcome.succeeded = 1;
        outcome.body_bytes = seen.bytes;
        outcome.delivered = Delivered { answers: 1, body_bytes: seen.bytes };
    } else {
        let cause = format!("status {} with a body of {} bytes", seen.status, seen.bytes);
        outcome.failures.insert("wrong_answer", 1);
        outcome.causes.insert(cause, 1);
    }
    Ok(outcome)
}

const HISTOGRAM_DIGITS: u8 = 3;

#[cfg(test)]
mod tests {
    use kettle_loadgen::load::Expect;

    use super::*;
    use crate::scenario::implausible::tests::closed;

    #[test]
    fn what_curl_writes_is_read() {
        let seen = parse("200 1073741824 2.151033 0.004512").unwrap();
        assert_eq!(
            seen,
            Seen { status: 200, bytes: 1 << 30, total: 2.151_033, first_byte: 0.004_512 }
        );
        assert_eq!(parse("curl: (7) refused"), None);
        assert_eq!(parse("200 12"), None);
    }

    #[test]
    fn a_download_becomes_an_outcome() {
        let load = load_of(1000);
        let seen = Seen { status: 200, bytes: 1000, total: 2.0, first_byte: 0.5 };
        let right = outcome(&load, &seen).unwrap();
        assert_eq!((right.succeeded, right.body_bytes), (1, 1000));
        let seconds = right.latency.max() as f64 / 1e6;
        assert!((seconds - 2.0).abs() < 0.01, "{seconds}");
        let short = outcome(&load, &Seen { bytes: 999, ..seen }).unwrap();
        assert_eq!((short.succeeded, short.failures["wrong_answer"]), (0, 1));
    }

    fn load_of(body_bytes: u64) -> Load {
        let expect = Expect { body_bytes: Some(body_bytes), body_sha256: None };
        Load { expect, ..closed(1) }
    }
}
