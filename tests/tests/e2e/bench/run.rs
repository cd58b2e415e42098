//! Runs of `kettle bench run`: their results, the end at Ctrl-C, and going on.

use std::ffi::OsStr;
use std::fs;
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::available_parallelism;

use kettle_tests::environment::is_guest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::*;

/// Words for a short run that needs no other program; its results go into `folder`.
fn words(folder: &Path, more: &[&str]) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let words = ["bench", "run", "web-sizes", "--servers", "kettle", "--paths", "user"];
    let where_to = ["--output", folder, "--connections", "4", "--seconds", "0.5"];
    words.iter().chain(&where_to).chain(more).map(|word| (*word).to_owned()).collect()
}

/// The run that goes on from the results in this folder.
fn resumed(folder: &Path) -> Tool {
    Tool::kettle(["bench", "run", "--resume"]).args([folder.join("results.jsonl")])
}

fn lines(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("results.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'l>(lines: &'l [Value], kind: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["line"] == kind).collect()
}

/// Samples that are not about system calls, which only machines with strace have.
fn samples(lines: &[Value]) -> Vec<&Value> {
    let samples = of_kind(lines, "sample").into_iter();
    samples.filter(|sample| sample["part"].is_null()).collect()
}

/// A folder for results; none on one processor, which client and server would share.
fn folder_or_skip() -> Option<TempDir> {
    let is_enough = available_parallelism().is_ok_and(|count| count >= NonZero::new(2).unwrap());
    if !is_enough {
        skip("one processor: client and server would share it");
    }
    is_enough.then(|| TempDir::new().unwrap())
}

/// An nginx.conf as people have it, with what a measurement has no use for.
const OWN_NGINX: &str = "user www-data; pid /run/nginx.pid;
events { worker_connections 768; }
http {
    sendfile on;
    access_log /var/log/nginx/access.log;
    server { listen 80; return 301 https://$host$request_uri; }
    server {
        listen 443 ssl;
        server_name www.example.com;
        ssl_certificate /etc/ssl/certs/none.pem;
        ssl_certificate_key /etc/ssl/private/none.key;
        ssl_protocols TLSv1.3;
        ssl_conf_command Options KTLS;
        location / { root /srv/none; }
        location /app/ { proxy_pass http://127.0.0.1:3000; }
    }
}
";

#[test]
fn both_servers_are_measured_by_an_nginx_conf_as_it_is() {
    let Some(folder) = folder_or_skip() else { return };
    if !Path::new("/usr/sbin/nginx").exists() {
        return skip("nginx is not installed");
    }
    let own = folder.path().join("own.conf");
    fs::write(&own, OWN_NGINX).unwrap();
    let config = format!("nginx={}", own.display());
    let words = [
        ["bench", "run"],
        ["web-sizes", "--config"],
        [config.as_str(), "--output"],
        [folder.path().to_str().unwrap(), "--connections"],
        ["4", "--seconds"],
        ["0.5", "--rounds"],
        ["1", "--sizes=1k"],
    ];
    let said = Tool::kettle(words.concat()).succeed();
    let lines = lines(folder.path());
    assert!(said.contains("\nVerdict: undecided whether kettle auto or nginx"), "{said}");
    assert!(said.contains("kettle auto beside nginx"), "{said}{:?}", of_kind(&lines, "absent"));
    let subjects = of_kind(&lines, "subject");
    assert_eq!(subjects.len(), 2, "{subjects:?}");
    for (subject, own) in subjects.iter().zip(["ssl_conf_command Options KTLS;", "[[listener]]"]) {
        let config = subject["config"].as_str().unwrap();
        assert!(config.contains(own) && !config.contains("3000"), "{config}");
    }
    let log = subjects[0]["config"].as_str().unwrap();
    assert!(log.contains("access.log combined;") && log.contains("location ("), "{log}");
    // Without kernel TLS nginx does without, as it would in service.
    let is_kernel = std::fs::read_to_string("/proc/net/tls_stat").is_ok();
    let path = if is_kernel { "nginx kernel-sendfile" } else { "nginx user" };
    assert_eq!(subjects[0]["name"], path);
}

/// The kinds of traffic that a server was measured by as a proxy, each with figures and without a failure.
fn traffic<'l>(lines: &'l [Value], server: &str) -> Vec<&'l str> {
    let samples = samples(lines).into_iter().filter(|sample| sample["subject"] == server);
    let each = samples.map(|sample| {
        let cpu = sample["figures"]["cpu_us_per_transaction"].as_f64();
        assert!(cpu.is_some_and(|cpu| cpu > 0.0), "{sample}");
        assert!(sample["failures"].as_object().is_none_or(|it| it.is_empty()), "{sample}");
        sample["point"]["traffic"].as_str().unwrap()
    });
    each.collect()
}

#[test]
fn proxies_are_measured_fresh_and_warm_by_connections_and_by_messages() {
    let Some(folder) = folder_or_skip() else { return };
    let short = ["bench", "run", "proxy", "--paths=user", "--seconds=0.2", "--rounds=1"];
    let said = Tool::kettle(short).args(["--sizes=1k", "--output"]).args([folder.path()]).succeed();
    let written = lines(folder.path());
    let absent: Vec<_> = of_kind(&written, "absent").iter().map(|it| it["what"].clone()).collect();
    for server in ["kettle proxy user", "nginx proxy", "haproxy proxy"] {
        let is_there = !absent.iter().any(|what| what == server);
        let all = ["fresh", "warm", "connection", "message"];
        assert_eq!(traffic(&written, server), all[..if is_there { 4 } else { 0 }], "{said}");
    }
    assert!(!absent.iter().any(|what| what == "kettle proxy user"), "{absent:?}");

    let folder = TempDir::new().unwrap();
    let http2 = ["--servers=kettle", "--sizes=16k", "--http=2", "--at-once=5", "--output"];
    let said = Tool::kettle(short).args(http2).args([folder.path()]).succeed();
    assert_eq!(traffic(&lines(folder.path()), "kettle proxy user"), ["fresh", "warm"], "{said}");
}

#[test]
fn the_command_of_the_readme_ends_in_a_verdict() {
    let Some(folder) = folder_or_skip() else { return };
    if !Path::new("/usr/sbin/nginx").exists() {
        return skip("nginx is not installed");
    }
    let written = README.lines().find_map(|line| line.strip_prefix("kettle bench run ")).unwrap();
    let written = written.split('#').next().unwrap().split_whitespace();
    let shorter = ["--sizes", "1k", "--seconds", "0.3", "--output"];
    let words = ["bench", "run"].into_iter().chain(written).chain(shorter);
    let said = Tool::kettle(words).args([folder.path()]).succeed();
    let verdict = said.lines().find_map(|line| line.strip_prefix("Verdict: ")).expect(&said);
    assert!(verdict.contains("kettle") && verdict.contains("nginx"), "{said}");
}

const README: &str = include_str!("../../../../README.md");

#[test]
fn an_nginx_conf_without_tls_is_refused_before_anything_is_measured() {
    let folder = TempDir::new().unwrap();
    let own = folder.path().join("own.conf");
    fs::write(&own, "http { server { listen 80; } }").unwrap();
    let config = format!("nginx={}", own.display());
    let run = ["bench", "run", "web-sizes", "--config", &config, "--output"];
    let words: Vec<_> = run.iter().copied().chain(folder.path().to_str()).collect();
    Tool::kettle(words).fail("no server of `http` has a `listen` with `ssl`");
}

#[test]
fn a_run_leaves_results_and_a_page() {
    let Some(folder) = folder_or_skip() else { return };
    let said =
        Tool::kettle(words(folder.path(), &["--sizes", "1k,64k", "--rounds", "1"])).succeed();
    assert!(said.contains("kettle user") && said.contains("report.html"), "{said}");
    assert!(said.contains("\nVerdict: none, no other server was measured"), "{said}");
    let lines = lines(folder.path());
    assert_eq!(lines[0]["line"], "run");
    assert_eq!(of_kind(&lines, "scenario").len(), 1);
    assert_eq!(of_kind(&lines, "complete").len(), 1);
    let subjects = of_kind(&lines, "subject");
    assert_eq!(subjects.len(), 1);
    assert!(subjects[0]["config"].as_str().unwrap().contains("[[listener]]"));
    let samples = samples(&lines);
    let sizes: Vec<_> = samples.iter().map(|sample| sample["point"]["size"].as_f64()).collect();
    assert_eq!(sizes, [Some(1024.0), Some(65536.0)]);
    for sample in samples {
        for figure in ["requests_per_second", "cpu_ns_per_request", "p99_us", "gigabits_per_second"]
        {
            let value = sample["figures"][figure].as_f64();
            // In an emulator the clock of a process may stand still for as long as a short round takes.
            let may_be_zero = figure == "cpu_ns_per_request" && is_guest();
            let is_right = |value| value > 0.0 || may_be_zero && value == 0.0;
            assert!(value.is_some_and(is_right), "{figure}: {sample}");
        }
        assert!(sample["histogram"].is_string());
    }
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("kettle user"));
}

#[test]
fn terminators_are_measured_before_one_backend() {
    let Some(folder) = folder_or_skip() else { return };
    let output = folder.path().to_str().unwrap();
    let what = ["bench", "run", "tps-ramp", "--roles", "terminator", "--servers", "kettle,haproxy"];
    let how = ["--effort", "quick", "--per-session", "1,2", "--seconds", "0.3", "--output", output];
    let _ = Tool::kettle(what.iter().chain(&how)).succeed();
    let lines = lines(folder.path());
    let absent = of_kind(&lines, "absent");
    let is_missing = absent.iter().any(|line| line["what"] == "haproxy terminator");
    let mut servers = vec!["kettle terminator auto"];
    if is_missing {
        skip(absent[0]["why"].as_str().unwrap());
    } else {
        servers.push("haproxy terminator");
    }
    for server in servers {
        let of_server = |line: &&&Value| line["subject"] == server && line["part"] == "summary";
        let samples = of_kind(&lines, "sample");
        let summaries: Vec<_> = samples.iter().filter(of_server).collect();
        assert_eq!(summaries.len(), 2, "{server}: {absent:?}");
        for summary in summaries {
            assert_eq!(summary["point"]["role"], "terminator");
            assert!(summary["figures"]["tps_max"].as_f64().unwrap() > 0.0, "{summary}");
        }
    }
    let subjects = of_kind(&lines, "subject");
    let kettle = subjects.iter().find(|line| line["name"] == "kettle terminator auto").unwrap();
    assert!(kettle["config"].as_str().unwrap().contains("kind = \"tls\""), "{kettle}");
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_the_run_goes_on_from_there() {
    let Some(folder) = folder_or_skip() else { return };
    let mut running =
        Tool::kettle(words(folder.path(), &["--sizes", "1k", "--rounds", ROUNDS])).start();
    running.stderr.wait_for("[2/");
    let process = Pid::from_raw(i32::try_from(running.process()).unwrap()).unwrap();
    kill_process(process, Signal::INT).unwrap();
    let ended = running.ended();
    assert_eq!(ended.status.code(), Some(130), "{}", ended.stderr);
    assert!(ended.text().contains("--resume"), "{}", ended.text());
    let before = lines(folder.path());
    let measured = samples(&before).len();
    assert!(measured >= 1, "{measured}");
    assert!(of_kind(&before, "complete").is_empty());

    // As if it had been begun with two rounds more than there are.
    let results = folder.path().join("results.jsonl");
    let wanted = measured + 2;
    let text = fs::read_to_string(&results).unwrap();
    fs::write(&results, text.replacen(ROUNDS, &wanted.to_string(), 1)).unwrap();
    let before = lines(folder.path());
    let _ = resumed(folder.path()).succeed();
    let after = lines(folder.path());
    assert_eq!(after[..before.len()], before);
    let rounds: Vec<_> = samples(&after).iter().map(|sample| sample["round"].as_u64()).collect();
    assert_eq!(rounds, (0..wanted as u64).map(Some).collect::<Vec<_>>());
    assert_eq!(of_kind(&after, "run").len(), 2);
    assert_eq!(of_kind(&after, "complete").len(), 1);
}

#[test]
fn results_of_another_machine_are_not_gone_on_with() {
    let Some(folder) = folder_or_skip() else { return };
    let _ = Tool::kettle(words(folder.path(), &["--sizes", "1k", "--rounds", "1"])).succeed();
    let results = folder.path().join("results.jsonl");
    let text = fs::read_to_string(&results).unwrap();
    let mut first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    first["machine"]["kernel"] = "2.6.32".into();
    fs::write(&results, format!("{first}\n")).unwrap();
    resumed(folder.path()).fail("2.6.32");
}

#[test]
fn results_of_another_build_of_a_server_are_not_gone_on_with() {
    let Some(folder) = folder_or_skip() else { return };
    let _ = Tool::kettle(words(folder.path(), &["--sizes", "1k", "--rounds", "1"])).succeed();
    let results = folder.path().join("results.jsonl");
    let mut before = lines(folder.path());
    before.retain(|line| line["line"] != "complete" && line["line"] != "sample");
    for line in before.iter_mut().filter(|line| line["line"] == "subject") {
        line["version"] = "kettle 0.1.0 (of yesterday)".into();
    }
    let text: Vec<String> = before.iter().map(ToString::to_string).collect();
    fs::write(&results, text.join("\n") + "\n").unwrap();
    let said = resumed(folder.path()).fail("kettle user is kettle 0.");
    assert!(said.contains("and was kettle 0.1.0 (of yesterday)"), "{said}");
    assert!(samples(&lines(folder.path())).is_empty());
}

#[test]
fn a_run_goes_on_by_the_configuration_it_began_with_wherever_that_is_asked() {
    let Some(folder) = folder_or_skip() else { return };
    let own = folder.path().join("own.toml");
    fs::write(&own, Tool::kettle(["bench", "config", "kettle"]).succeed()).unwrap();
    let named = ["--sizes", "1k", "--rounds", "1", "--config", "kettle=own.toml"];
    let _ = Tool::kettle(words(folder.path(), &named)).within(folder.path()).succeed();
    let results = folder.path().join("results.jsonl");
    let begun = lines(folder.path()).into_iter();
    let begun = begun.filter(|line| line["line"] != "complete" && line["line"] != "sample");
    let begun = begun.map(|line| format!("{line}\n")).collect::<String>();
    let go_on = || {
        fs::write(&results, &begun).unwrap();
        resumed(folder.path())
    };

    let _ = go_on().succeed();
    assert_eq!(samples(&lines(folder.path())).len(), 1);

    let text = fs::read_to_string(&own).unwrap();
    fs::write(&own, format!("# Changed.\n{text}")).unwrap();
    go_on().fail("kettle user has another configuration than before");
    assert!(samples(&lines(folder.path())).is_empty());
}

#[test]
fn words_that_are_not_utf_8_are_refused_with_a_sentence() {
    let folder = TempDir::new().unwrap();
    let name = OsStr::from_bytes(b"caf\xe9");
    let words = ["bench", "run", "web-sizes", "--output"].map(OsStr::new);
    let ended = Tool::kettle(words).args([name]).within(folder.path()).output();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("is not UTF-8"), "{}", ended.stderr);
    assert!(!folder.path().join(name).exists());
}

#[test]
fn a_refused_run_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let output = folder.path().join("new");
    let words = ["bench", "run", "web-size", "--output", output.to_str().unwrap()];
    Tool::kettle(words).fail("web-sizes");
    assert!(!output.exists());
}

#[test]
fn a_run_without_a_name_says_what_there_is() {
    Tool::kettle(["bench", "run"]).fail("web-sizes");
}

#[test]
fn the_list_names_comparisons_and_servers() {
    let list = Tool::kettle(["bench", "list"]).succeed();
    assert!(list.contains("ktls-setup") && list.contains("kettle 0."), "{list}");
}

/// More rounds than any machine makes before the test asks for the end.
const ROUNDS: &str = "98765";
