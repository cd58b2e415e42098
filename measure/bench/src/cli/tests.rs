use std::path::Path;

use clap::CommandFactory;

use super::*;
use crate::peers::subject::OwnConfig;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn the_program_itself_may_be_called_too() {
    for words in [
        &["kettle", "bench", "list"][..],
        &["kettle-bench", "bench", "list"],
        &["kettle-bench", "list"],
    ] {
        let command = Cli::read(words.iter().map(OsString::from)).unwrap().command;
        assert!(
            matches!(command, Command::Bench(BenchArguments { command: BenchCommand::List })),
            "{words:?}: {command:?}"
        );
    }
    for (words, usage) in [
        (&["kettle", "bench", "run", "--help"][..], "Usage: kettle bench run "),
        (&["kettle", "help", "bench", "run"], "Usage: kettle bench run "),
        (&["kettle", "bench", "help", "run"], "Usage: kettle bench run "),
        (&["kettle", "calibrate", "--help"], "Usage: kettle calibrate "),
        (&["kettle", "help", "calibrate"], "Usage: kettle calibrate "),
        (&["kettle-bench"], "Usage: kettle bench "),
    ] {
        let said = Cli::read(words.iter().map(OsString::from)).unwrap_err().to_string();
        assert!(said.contains(usage), "{words:?}: {said}");
    }
}

fn bench(words: &[&str]) -> Result<BenchCommand, clap::Error> {
    let all = ["kettle", "bench"].iter().chain(words);
    match Cli::read(all.map(OsString::from))?.command {
        Command::Bench(arguments) => Ok(arguments.command),
        other => panic!("{other:?}"),
    }
}

fn run(words: &[&str]) -> RunArguments {
    let all: Vec<_> = ["run"].iter().chain(words).copied().collect();
    match bench(&all).unwrap() {
        BenchCommand::Run(arguments) => *arguments,
        other => panic!("{other:?}"),
    }
}

fn load(words: &[&str]) -> Result<LoadArguments, clap::Error> {
    let all: Vec<_> = ["load", "https://localhost/"].iter().chain(words).copied().collect();
    match bench(&all)? {
        BenchCommand::Load(arguments) => Ok(*arguments),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lists_are_separated_by_commas() {
    let arguments = run(&["web-sizes", "--servers", "kettle,nginx", "--sizes", "1k,64KiB,10M"]);
    assert_eq!(arguments.names, ["web-sizes"]);
    assert_eq!(arguments.options.servers, Some(vec![Program::Kettle, Program::Nginx]));
    assert_eq!(arguments.options.sizes, Some(vec![1024, 65_536, 10 << 20]));
}

#[test]
fn nothing_said_is_left_to_the_scenario() {
    let arguments = run(&["ciphers"]);
    assert_eq!(arguments.effort, Effort::Normal);
    assert!(arguments.options.servers.is_none());
    assert!(arguments.options.sizes.is_none());
    assert!(arguments.options.rounds.is_none());
    assert!(arguments.options.seconds.is_none());
    assert!(arguments.options.configs.is_empty());
}

#[test]
fn a_configuration_belongs_to_a_program() {
    let arguments = run(&["ciphers", "--config", "nginx=my.conf", "--config", "hitch=h.conf"]);
    let own = |file: &str| OwnConfig::Template(file.into());
    let expected = [(Program::Nginx, own("my.conf")), (Program::Hitch, own("h.conf"))];
    assert_eq!(arguments.options.configs, expected);
    assert!(bench(&["run", "ciphers", "--config", "my.conf"]).is_err());
    assert!(bench(&["run", "ciphers", "--config", "apache=my.conf"]).is_err());
}

#[test]
fn a_throughput_is_a_number_above_zero() {
    let asked = ["streaming", "--throughput", "0.5,20"];
    assert_eq!(run(&asked).options.throughputs, Some(vec![0.5, 20.0]));
    for wrong in ["nan", "inf", "0", "1,0"] {
        assert!(bench(&["run", "streaming", "--throughput", wrong]).is_err(), "{wrong}");
    }
    assert!(bench(&["run", "streaming", "--throughput=-1"]).is_err());
}

#[test]
fn a_mistyped_word_is_answered_with_the_known_ones() {
    let error = bench(&["run", "ciphers", "--servers", "ngnix"]).unwrap_err().to_string();
    assert!(error.contains("haproxy"), "{error}");
}

#[test]
fn files_of_a_run_that_goes_on_are_where_it_began() {
    let words = ["ciphers", "--config", "nginx=my.conf", "--config", "hitch=/h.conf"];
    let words = [&words[..], &["--directory", "shm"]].concat();
    let options = run(&words).options.of_run_in(Path::new("/begun"));
    let own = |file: &str| OwnConfig::Template(file.into());
    let expected = [(Program::Nginx, own("/begun/my.conf")), (Program::Hitch, own("/h.conf"))];
    assert_eq!(options.configs, expected);
    assert_eq!(options.directory, Some(PathBuf::from("/begun/shm")));
}

#[test]
fn a_run_goes_on_as_it_was_begun() {
    assert!(bench(&["run", "--resume", "a.jsonl"]).is_ok());
    assert!(bench(&["run", "--resume", "a.jsonl", "--output", "b"]).is_err());
    assert!(bench(&["run", "--resume", "a.jsonl", "--rounds", "3"]).is_err());
    assert!(bench(&["run", "ciphers", "--resume", "a.jsonl"]).is_err());
}

#[test]
fn a_load_is_closed_or_open_or_a_ramp() {
    assert_eq!(load(&[]).unwrap().connections, 10);
    assert_eq!(load(&["--rate", "2000"]).unwrap().rate, Some(2000.0));
    assert_eq!(load(&["--ramp", "50..5000"]).unwrap().ramp, Some((50.0, 5000.0)));
    assert!(load(&["--rate", "5", "--connections", "2"]).is_err());
    assert!(load(&["--rate", "5", "--ramp", "1..2"]).is_err());
    for wrong in ["50", "50..", "..50", "0..50", "a..b", "50..inf"] {
        assert!(load(&["--ramp", wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn a_header_is_a_name_and_a_value() {
    let headers = load(&["-H", "Accept-Encoding: gzip", "--header", "X-A:1"]).unwrap().headers;
    let expected = [("Accept-Encoding", "gzip"), ("X-A", "1")];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    for wrong in ["gzip", ": gzip", "a b: c", "a: b\r\nc: d"] {
        assert!(load(&["-H", wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn nothing_is_counted_from_zero() {
    for words in [
        ["--connections", "0"],
        ["--seconds", "0"],
        ["--seconds", "-1"],
        ["--seconds", "NaN"],
        ["--seconds", "100000"],
        ["--requests-per-connection", "0"],
        ["--connections-per-session", "0"],
        ["--rate", "0"],
    ] {
        assert!(load(&words).is_err(), "{words:?}");
    }
    assert_eq!(load(&["--warm-up", "0"]).unwrap().warm_up, Duration::ZERO);
}
