//! The command line of `kettle bench` and `kettle calibrate`. It reads as part of the program `kettle`, which hands over all its words.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueHint};
use kettle_loadgen::offer::ResumeBy;
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

use crate::number::{parse_count, parse_positive, parse_time, parse_time_or_none};
use crate::peers::subject::{Program, Role};
use crate::scenario::options::{Effort, Http, Options};
use crate::word::Word;

#[derive(Debug, Parser)]
#[command(name = "kettle", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare kettle with other servers on this machine, or put a load on one
    Bench(BenchArguments),
    /// Measure from which size of file on the kernel is the cheaper place
    Calibrate(CalibrateArguments),
}

impl Cli {
    /// Reads the words, the program's name first. `kettle-bench run` is `kettle bench run`.
    ///
    /// # Errors
    /// The fault of them, or the help that was asked for.
    pub(crate) fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        // Whatever the program was called as, its help says `kettle`.
        let words = words.into_iter().skip(1);
        let mut words: Vec<OsString> = std::iter::once("kettle".into()).chain(words).collect();
        let is_command = |word: Option<&OsString>| {
            word.is_some_and(|word| word == "bench" || word == "calibrate")
        };
        let asks_for_help = words.get(1).is_some_and(|word| word == "help");
        if !is_command(words.get(if asks_for_help { 2 } else { 1 })) {
            words.insert(1, "bench".into());
        }
        Self::try_parse_from(words)
    }
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArguments {
    /// The length of the measurement
    #[arg(long, default_value_t = 15, value_name = "SECONDS",
          value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub(crate) seconds: u16,
    /// The folder of the file to send; best on the file system that will be served
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// List the comparisons, and what of them this machine can do
    List,
    /// Make one or more of them, and write a results file and a page with charts
    Run(Box<RunArguments>),
    /// Make the page, or the charts alone, from results files
    Report(ReportArguments),
    /// Say which figures are better or worse in B than in A, and which cannot be told
    Diff(DiffArguments),
    /// Put a load of your own on any server, and see what it answers
    Load(Box<LoadArguments>),
    /// Print the configuration a program is measured with
    Config(ConfigArguments),
    /// Write the manual pages and the completions, for packages
    #[command(hide = true)]
    Manual(ManualArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ManualArguments {
    /// Gets man1/ and completions/
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The date the pages bear, such as 2026-11-22
    #[arg(long, default_value = "", value_name = "DATE")]
    pub(crate) date: String,
}

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArguments {
    /// The comparisons; `kettle bench list` has their names, `all` is every one
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The time that the answer is worth: quick, normal or thorough
    #[arg(long, default_value = "normal", value_name = "EFFORT", value_parser = Effort::from_word)]
    pub(crate) effort: Effort,
    /// The folder of results and page [default: ./kettle-bench-DATE]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Go on with a run that was stopped, as it was begun: what is in this results file is not measured again
    #[arg(long, value_name = "FILE", exclusive = true, value_hint = ValueHint::FilePath)]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: Options,
}

#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArguments {
    /// Results files
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// The place of the page [default: report.html beside the first file]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Put each chart into this folder as SVG too
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) charts: Option<PathBuf>,
    /// Write the answer alone, to be shown to others: NAME.svg and NAME.md
    #[arg(long, value_name = "NAME", value_hint = ValueHint::FilePath)]
    pub(crate) card: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The earlier results
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// The later results
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub(crate) after: PathBuf,
    /// Show figures that cannot be told apart too
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the comparison as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = LOAD_EXAMPLES)]
pub(crate) struct LoadArguments {
    /// The URLs to ask: https://HOST[:PORT]/PATH, or http://. For `{9}` in the path each request has one of the numbers
    /// below 9, in turn, for `{9~2}` one drawn at random, by the seed 2
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Connect to this address and port instead of where the URL's host is
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) connect: Option<SocketAddr>,
    /// A header of each request, such as 'Accept-Encoding: gzip'; may be said several times
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = parse_header)]
    pub(crate) headers: Vec<(String, String)>,
    /// Connections open at the same time; each asks again as soon as it has its answer
    #[arg(long, short, default_value_t = 10, value_name = "NUMBER", value_parser = parse_count)]
    pub(crate) connections: u32,
    /// Ask once on each connection, then hold them all and ask nothing
    #[arg(long, conflicts_with_all = ["rate", "ramp", "requests", "requests_per_connection"])]
    pub(crate) idle: bool,
    /// Transactions begun each second whatever the server does; latency counts from when they were due
    #[arg(long, value_name = "NUMBER", conflicts_with = "connections", value_parser = parse_positive)]
    pub(crate) rate: Option<f64>,
    /// The same, with a rate that grows from A to B
    #[arg(long, value_name = "A..B", conflicts_with_all = ["connections", "rate"], value_parser = ramp)]
    pub(crate) ramp: Option<(f64, f64)>,
    /// The length of the load, such as 10, 10s or 2min [default: 10, or until --requests are made]
    #[arg(long, short, value_name = "TIME", value_parser = parse_time)]
    pub(crate) seconds: Option<Duration>,
    /// End after so many requests, warm-up included
    #[arg(long, short = 'n', value_name = "NUMBER", value_parser = parse_count)]
    pub(crate) requests: Option<u32>,
    /// Left out of the figures, at the beginning
    #[arg(long, default_value = "0", value_name = "TIME", value_parser = parse_time_or_none)]
    pub(crate) warm_up: Duration,
    /// TLS version: 1.2 or 1.3
    #[arg(long, default_value = "1.3", value_name = "VERSION", value_parser = Version::from_word)]
    pub(crate) tls: Version,
    #[command(flatten)]
    pub(crate) http: Http,
    /// The only suite offered
    #[arg(long, default_value = "aes-128-gcm", value_name = "SUITE", value_parser = Cipher::from_word)]
    pub(crate) suite: Cipher,
    /// The only group offered
    #[arg(long, default_value = "x25519", value_name = "GROUP", value_parser = Group::from_word)]
    pub(crate) group: Group,
    /// Requests on one connection before it is closed [default: as many as there is time for]
    #[arg(long, value_name = "NUMBER", value_parser = parse_count)]
    pub(crate) requests_per_connection: Option<u32>,
    /// Connections with one TLS session: one full handshake, the others resume it
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = parse_count)]
    pub(crate) connections_per_session: u32,
    /// The way in which they resume it: ticket, session-id or early-data [default: ticket, if there is a session to resume]
    #[arg(long, value_name = "HOW", value_parser = ResumeBy::from_word)]
    pub(crate) resume: Option<ResumeBy>,
    /// A transaction that takes longer has failed
    #[arg(long, default_value = "10", value_name = "TIME", value_parser = parse_time)]
    pub(crate) timeout: Duration,
    /// Open and check every record, instead of dropping bodies unread in the kernel
    #[arg(long)]
    pub(crate) open: bool,
    /// CPUs to run on, a thread each [default: one]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cpus: Option<Vec<usize>>,
    /// Print the figures as JSON, with the histogram of latency
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// nginx, haproxy, hitch, stunnel or kettle
    #[arg(value_name = "PROGRAM", value_parser = Program::from_word)]
    pub(crate) program: Program,
    /// Its role: files, terminator, cache or proxy; matters for nginx alone
    #[arg(long, default_value = "files", value_name = "ROLE", value_parser = Role::from_word)]
    pub(crate) role: Role,
}

/// `50..5000`.
fn ramp(text: &str) -> Result<(f64, f64), String> {
    let wrong = || "write the rate at the start and at the end, such as 50..5000".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    Ok((parse_positive(from).map_err(|_| wrong())?, parse_positive(to).map_err(|_| wrong())?))
}

/// `Accept-Encoding: gzip`.
fn parse_header(text: &str) -> Result<(String, String), String> {
    let wrong = "write a name, a colon and a value, such as 'Accept-Encoding: gzip'";
    let (name, value) = text.split_once(':').ok_or(wrong)?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_well = !name.is_empty() && name.bytes().all(is_name) && !value.contains(['\r', '\n']);
    is_well.then(|| (name.to_owned(), value.trim().to_owned())).ok_or_else(|| wrong.to_owned())
}

const EXAMPLES: &str = "\
Examples:
  kettle bench list                                  what can be compared here
  kettle bench run web-sizes --effort quick          a first look, with a page of charts
  kettle bench run all --effort thorough             to publish; may take hours
  kettle bench diff before/results.jsonl after/results.jsonl
  kettle bench load https://localhost:8443/ --connections 100";

const RUN_EXAMPLES: &str = "\
Examples:
  kettle bench run nginx-1g                          one large file: user space or kernel?
  kettle bench run nginx-1g --sizes 256M --client curl
  kettle bench run web-sizes --servers kettle,nginx --paths user,kernel-sendfile --sizes 1k,64k,1M
  kettle bench run tps-ramp --key rsa2048 --suite aes-128-gcm --per-session 1,8
  kettle bench run web-sizes --config nginx=/etc/nginx/nginx.conf     your nginx, and what kettle makes of it
  kettle bench run --resume kettle-bench-2026-11-22/results.jsonl

Ctrl-C ends the run after the sample that is being taken, a second Ctrl-C at once; `--resume` goes on from there.";

const REPORT_EXAMPLES: &str = "\
Examples:
  kettle bench report results.jsonl
  kettle bench report monday.jsonl tuesday.jsonl --output both.html --charts charts
  kettle bench report results.jsonl --card answer    the answer alone, as answer.svg and answer.md";

const LOAD_EXAMPLES: &str = "\
Examples:
  kettle bench load https://localhost:8443/          10 connections for 10 seconds
  kettle bench load https://localhost:8443/ --connections 100 --requests 5000
  kettle bench load https://localhost:8443/ --rate 2000 --requests-per-connection 1
                                                     2,000 new connections a second
  kettle bench load https://localhost:8443/ --ramp 50..5000 --seconds 60 --requests-per-connection 1 \\
      --connections-per-session 8 --resume ticket    until it breaks, one full handshake in eight

Certificates are not verified, and the load is as hard on the server as you ask for: use it on your own.";

#[cfg(test)]
mod tests;
