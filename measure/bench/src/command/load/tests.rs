use std::ffi::OsString;

use super::*;
use crate::cli::{BenchCommand, Cli, Command};

fn planned(words: &[&str]) -> Result<Load, String> {
    let all = ["kettle", "bench", "load", "https://127.0.0.1:8443/x"].iter().chain(words);
    let Command::Bench(bench) = Cli::read(all.map(OsString::from)).unwrap().command else {
        panic!()
    };
    let BenchCommand::Load(arguments) = bench.command else { panic!() };
    plan(&arguments, &Url::parse(&arguments.url)?)
}

#[test]
fn a_plain_load_is_closed_and_full() {
    let load = planned(&[]).unwrap();
    assert_eq!(load.model, LoadModel::Closed { connections: 10 });
    assert_eq!(load.end, End::After(Duration::from_secs(10)));
    assert_eq!(load.tls.unwrap().resume_by, ResumeBy::Nothing);
    assert_eq!((load.host.as_str(), load.path.as_str()), ("127.0.0.1", "/x"));
}

#[test]
fn requests_at_once_need_http_2() {
    assert_eq!(planned(&["--http", "2", "--at-once", "5"]).unwrap().tls.unwrap().http2, Some(5));
    assert!(planned(&["--at-once", "5"]).is_err_and(|why| why.contains("--http 2")));
}

#[test]
fn the_warm_up_is_added_to_the_time() {
    let load = planned(&["--seconds", "3", "--warm-up", "2"]).unwrap();
    assert_eq!(load.end, End::After(Duration::from_secs(5)));
    assert_eq!(load.warm_up, Duration::from_secs(2));
}

#[test]
fn a_load_may_end_by_its_requests() {
    let count = 500;
    let all_day = Duration::from_secs(86_400);
    assert_eq!(planned(&["-n", "500"]).unwrap().end, End::Requests { count, at_most: all_day });
    let at_most = Duration::from_secs(90);
    let end = planned(&["--requests", "500", "--seconds", "1.5min"]).unwrap().end;
    assert_eq!(end, End::Requests { count, at_most });
}

#[test]
fn times_may_have_a_unit() {
    for (text, seconds) in [("2", 2.0), ("2s", 2.0), ("500ms", 0.5), ("1m", 60.0), ("2 h", 7200.0)]
    {
        let end = planned(&["--seconds", text]).unwrap().end;
        assert_eq!(end, End::After(Duration::from_secs_f64(seconds)), "{text}");
    }
    for text in ["2d", "s", "-1s", "0", "48h"] {
        let words = ["kettle", "bench", "load", "https://h/", "--seconds", text];
        assert!(Cli::read(words.iter().map(OsString::from)).is_err(), "{text}");
    }
}

#[test]
fn sessions_are_resumed_by_ticket_unless_said_otherwise() {
    let words = ["--requests-per-connection", "1", "--connections-per-session", "8"];
    assert_eq!(planned(&words).unwrap().tls.unwrap().resume_by, ResumeBy::Ticket);
    let words = [&words[..], &["--tls", "1.2", "--resume", "session-id"]].concat();
    assert_eq!(planned(&words).unwrap().tls.unwrap().resume_by, ResumeBy::SessionId);
}

#[test]
fn what_can_never_resume_is_refused_with_what_to_add() {
    let refused = planned(&["--connections-per-session", "8"]).unwrap_err();
    assert!(refused.contains("--requests-per-connection 1"), "{refused}");
    let refused = planned(&["--resume", "ticket"]).unwrap_err();
    assert!(refused.contains("--connections-per-session"), "{refused}");
}

#[test]
fn many_new_connections_come_from_many_addresses() {
    let few = planned(&[]).unwrap().sources;
    let many = planned(&["--rate", "5000", "--requests-per-connection", "1"]).unwrap().sources;
    assert!(few < many, "{few} {many}");
}

/// A server that answers 1,000 a second, asked for 1,400.
#[test]
fn the_rate_is_of_what_came_in_time() {
    let mut outcome = Outcome::nothing(hdrhistogram::Histogram::new(3).unwrap());
    outcome.elapsed = Duration::from_secs(10);
    outcome.delivered.answers = 10_000;
    (outcome.succeeded, outcome.late_answers) = (14_000, 4_000);
    let said = render(&outcome, &planned(&[]).unwrap(), None);
    assert!(said.starts_with("10,000 requests in 10.00 s: 1,000/s"), "{said}");
    assert!(said.contains("4,000 more were answered after that"), "{said}");
    assert_eq!(to_json(&outcome, None)["requests_per_second"], 1_000.0);
}
