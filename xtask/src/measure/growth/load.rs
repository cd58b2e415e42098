//! Loads by `kettle-bench load`, and what came of them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::server::{ending_with_us, signal};
use crate::process;

/// Whom to ask for what.
#[derive(Clone, Copy)]
pub struct LoadTarget<'t> {
    pub port: u16,
    pub host: &'t str,
    /// With the number in it as `kettle-bench load` wants it.
    pub path: &'t str,
}

/// What came of a load.
#[derive(Debug, PartialEq)]
pub struct Answers {
    pub succeeded: f64,
    pub body_bytes: f64,
    /// What one in a thousand waited for longer.
    pub p999_us: f64,
    pub max_us: f64,
}

impl Answers {
    fn of(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let failures = &value["failures"];
        let failed = failures.as_object().into_iter().flat_map(|each| each.values());
        let failed: f64 = failed.filter_map(Value::as_f64).sum();
        if failed > value["succeeded"].as_f64().unwrap_or(0.0) / SUCCEEDED_PER_FAILED {
            return Err(format!("answers failed: {failures}"));
        }
        if failed > 0.0 {
            eprintln!("few answers failed: {failures}");
        }
        let number = |value: &Value| value.as_f64().ok_or("no figures of the load");
        Ok(Self {
            succeeded: number(&value["succeeded"])?,
            body_bytes: number(&value["body_bytes"])?,
            p999_us: number(&value["latency_us"]["p999"])?,
            max_us: number(&value["latency_us"]["max"])?,
        })
    }
}

/// The client: the program and the processors it has.
pub struct Client {
    pub bench: PathBuf,
    pub cpus: String,
}

impl Client {
    /// Puts a load on and waits for its end.
    pub fn run(&self, target: LoadTarget<'_>, words: &str) -> Result<Answers, String> {
        Answers::of(&process::read(&mut self.command(target, words))?)
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
    pub fn end(mut self) -> Result<Answers, String> {
        signal("INT", &[self.0.id()])?;
        let mut text = String::new();
        let read = self.0.stdout.as_mut().map(|stdout| stdout.read_to_string(&mut text));
        read.transpose().map_err(|error| format!("the client's figures: {error}"))?;
        Answers::of(&text)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many requests the origin has had, this one among them.
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
        let right = Answers { succeeded: 2.0, body_bytes: 8.0, p999_us: 3.0, max_us: 4.0 };
        assert_eq!(Answers::of(&text("{}")), Ok(right));
        assert!(Answers::of(&text(r#"{"timeout":1}"#)).is_err_and(|it| it.contains("timeout")));
        assert!(Answers::of("{}").is_err() && Answers::of("").is_err());
    }

    #[test]
    fn the_count_of_the_origin_is_read() {
        let text =
            "Active connections: 1 \nserver accepts handled requests\n 16 16 31 \nReading: 0";
        assert_eq!(parse_requests(text), Some(31));
        assert_eq!(parse_requests("HTTP/1.1 404 Not Found"), None);
    }
}
