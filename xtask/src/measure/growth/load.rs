//! Loads by `kettle-bench load`, and what came of them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::measure::daemon::{ending_with_us, signal};
use crate::process;

#[derive(Clone, Copy)]
pub struct LoadTarget<'t> {
    pub port: u16,
    pub host: &'t str,
    /// With the number in it as `kettle-bench load` wants it.
    pub path: &'t str,
}

#[derive(Debug, PartialEq)]
pub struct Answers {
    pub succeeded: f64,
    pub body_bytes: f64,
    /// The time for longer than which one in a thousand waited.
    pub p999_us: f64,
    pub max_us: f64,
    /// Connections that a reload closed, each opened anew for the next request.
    pub closed: f64,
}

/// The work that goes on beside a load.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    Nothing,
    /// A reload, in which a server may close a kept connection at any moment (RFC 9112 §9.3.1).
    Reload,
}

impl Answers {
    fn of(text: &str, beside: Beside) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let failures = &value["failures"];
        let is_closing = |word: &str| beside == Beside::Reload && CLOSING.contains(&word);
        let each = || failures.as_object().into_iter().flatten();
        let sum = |counts: &mut dyn Iterator<Item = (&String, &Value)>| -> f64 {
            counts.filter_map(|(_, count)| count.as_f64()).sum()
        };
        let closed = sum(&mut each().filter(|(word, _)| is_closing(word)));
        let failed = sum(&mut each().filter(|(word, _)| !is_closing(word)));
        if failed > value["succeeded"].as_f64().unwrap_or(0.0) / SUCCEEDED_PER_FAILED {
            return Err(format!("answers failed: {failures}"));
        }
        if failed > 0.0 {
            eprintln!("few answers failed: {failures}");
        }
        let succeeded = value["succeeded"].as_f64().ok_or(NO_FIGURES)?;
        // Of a request whose connection was closed there are none.
        let number = |value: &Value| match value.as_f64() {
            None if closed > 0.0 && succeeded == 0.0 => Ok(0.0),
            number => number.ok_or(NO_FIGURES),
        };
        Ok(Self {
            succeeded,
            body_bytes: number(&value["body_bytes"])?,
            p999_us: number(&value["latency_us"]["p999"])?,
            max_us: number(&value["latency_us"]["max"])?,
            closed,
        })
    }
}

/// The client: the program and the processors it has.
pub struct Client {
    pub bench: PathBuf,
    pub cpus: String,
}

impl Client {
    pub fn run(&self, target: LoadTarget<'_>, words: &str) -> Result<Answers, String> {
        Answers::of(&process::read(&mut self.command(target, words))?, Beside::Nothing)
    }

    /// Asks once in a reload, over a connection of its own. No answer if that was closed.
    pub fn ask_in_reload(&self, target: LoadTarget<'_>) -> Result<Option<Answers>, String> {
        let mut command = self.command(target, "-n 1 -c 1");
        // With no answer at all it ends with a failure, and says why in the same words.
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let output = output.map_err(|error| format!("cannot start the client: {error}"))?;
        let answers = Answers::of(&String::from_utf8_lossy(&output.stdout), Beside::Reload)?;
        Ok(Some(answers).filter(|answers| answers.succeeded > 0.0))
    }

    /// Puts a load on that lasts until it is ended.
    pub fn begin(&self, target: LoadTarget<'_>, words: &str) -> Result<Begun, String> {
        let mut command = self.command(target, words);
        command.args(["--seconds", "86400"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.stderr(Stdio::null()).spawn();
        child.map(Begun).map_err(|error| format!("cannot start the client: {error}"))
    }

    fn command(&self, target: LoadTarget<'_>, words: &str) -> Command {
        let LoadTarget { port, host, path } = target;
        let mut command = ending_with_us();
        command.arg(&self.bench).arg("load").arg(format!("https://{host}:{port}{path}"));
        command.args(["--connect", &format!("127.0.0.1:{port}"), "--json", "--timeout", "60"]);
        command.args(["--cpus", &self.cpus]).args(words.split_whitespace());
        command
    }
}

/// A load that lasts. It is ended when dropped.
pub struct Begun(Child);

impl Begun {
    /// Ends it, and says what came of it.
    pub fn end(mut self, beside: Beside) -> Result<Answers, String> {
        signal("INT", &[self.0.id()])?;
        let mut text = String::new();
        let read = self.0.stdout.as_mut().map(|stdout| stdout.read_to_string(&mut text));
        read.transpose().map_err(|error| format!("the client's figures: {error}"))?;
        Answers::of(&text, beside)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The number of requests the origin has had, this one among them.
pub fn requests_at_origin(port: u16) -> Result<u64, String> {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(b"GET /status HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = ask().map_err(|error| format!("the origin: {error}"))?;
    parse_requests(&text).ok_or_else(|| "the origin does not count its requests".to_owned())
}

/// Of nginx' `stub_status`: the line behind `server accepts handled requests`.
fn parse_requests(text: &str) -> Option<u64> {
    let mut lines = text.lines().skip_while(|line| !line.contains("handled requests"));
    lines.nth(1)?.split_whitespace().nth(2)?.parse().ok()
}

/// The names in `kettle-bench load` for a connection that a server closed before it answered.
const CLOSING: [&str; 3] = ["closed", "closed_idle", "reset"];

const NO_FIGURES: &str = "no figures of the load";

/// A row is not given up for fewer failures than one of so many.
const SUCCEEDED_PER_FAILED: f64 = 10_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_failed_are_an_error() {
        let text = |failures: &str| {
            format!(
                r#"{{"succeeded":2,"body_bytes":8,"failures":{failures},"latency_us":{{"p999":3,"max":4}}}}"#
            )
        };
        let right =
            Answers { succeeded: 2.0, body_bytes: 8.0, p999_us: 3.0, max_us: 4.0, closed: 0.0 };
        let of = |text: &str| Answers::of(text, Beside::Nothing);
        assert_eq!(of(&text("{}")), Ok(right));
        assert!(of(&text(r#"{"timeout":1}"#)).is_err_and(|it| it.contains("timeout")));
        assert!(of(&text(r#"{"closed":1}"#)).is_err_and(|it| it.contains("closed")));
        assert!(of("{}").is_err() && of("").is_err());
    }

    #[test]
    fn connections_that_a_reload_closed_are_counted_and_no_failures() {
        let of = |succeeded: u32, failures: &str| {
            let latency = if succeeded > 0 { r#"{"p999":3,"max":4}"# } else { "{}" };
            let text = format!(
                r#"{{"succeeded":{succeeded},"body_bytes":8,"failures":{failures},"latency_us":{latency}}}"#
            );
            Answers::of(&text, Beside::Reload)
        };
        assert_eq!(of(2, r#"{"closed":4,"reset":1}"#).map(|it| it.closed), Ok(5.0));
        assert_eq!(of(0, r#"{"closed":1}"#).map(|it| it.succeeded), Ok(0.0));
        assert!(of(2, r#"{"closed":4,"truncated":1}"#).is_err_and(|it| it.contains("truncated")));
    }

    #[test]
    fn the_count_of_the_origin_is_read() {
        let text =
            "Active connections: 1 \nserver accepts handled requests\n 16 16 31 \nReading: 0";
        assert_eq!(parse_requests(text), Some(31));
        assert_eq!(parse_requests("HTTP/1.1 404 Not Found"), None);
    }
}
