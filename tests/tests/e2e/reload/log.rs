//! The access log, where a file takes it.

use std::time::Instant;

use serde_json::Value;

use super::*;

#[test]
fn a_log_file_that_was_moved_away_is_opened_anew_on_request() {
    let mut kettle = Kettle::start(logging("json"));
    let mut client = kettle.connect(TLS13_AES_128);
    client.get("/a?before");
    // Its line is made behind its answer, and before the next one's.
    client.get("/a?between");
    let log = kettle.folder.path("access.log");
    fs::rename(&log, kettle.folder.path("access.log.1")).unwrap();
    let _ = kettle.ctl(&["reopen"]).succeed();
    client.get("/a?after");
    let _ = kettle.ctl(&["stop"]).succeed();
    let _ = kettle.ended();
    let [old, new] = ["access.log.1", "access.log"]
        .map(|name| fs::read_to_string(kettle.folder.path(name)).unwrap());
    assert!(old.contains("/a?before") && !old.contains("/a?after"), "{old}");
    assert!(new.contains("/a?after") && !new.contains("/a?before"), "{new}");
}

#[test]
fn a_limit_of_file_sizes_takes_lines_and_not_the_server() {
    let setup = logging("json").set("log", "buffer = 0");
    let kettle = Kettle::start(setup.launched_by(&["prlimit", "--fsize=1024:1024"]));
    let mut client = kettle.connect(TLS13_AES_128);
    while kettle.status("/log_lines_dropped") == 0 {
        assert_eq!(client.get("/a").body, b"content");
    }
    assert_eq!(client.get("/a").body, b"content");
}

#[test]
fn a_pipe_that_nobody_reads_is_refused_and_the_log_goes_on() {
    let kettle = Kettle::start(logging("json"));
    let pipe = kettle.folder.path("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR | Mode::WOTH).unwrap();
    kettle.folder.change_config("access.log", "pipe");
    kettle.ctl(&["reload"]).fail("nobody reads this pipe");
    kettle.connect(TLS13_AES_128).get("/a?1");
    assert_eq!(targets(&kettle, "access.log", 1), ["200 /a?1"]);
    kettle.reload_with("pipe", "access.log");
    kettle.connect(TLS13_AES_128).get("/a?2");
    assert_eq!(targets(&kettle, "access.log", 2).len(), 2);
}

#[test]
fn a_reload_that_a_stop_refuses_leaves_the_log_where_it_is() {
    let mut kettle = Kettle::start(logging("json").sizes(&[LARGE]));
    let mut client = Dialer::default().reading_slowly().connect(kettle.address());
    client.send(&get(&format!("/{LARGE}"))).unwrap();
    assert!(client.receive(&mut [0; 1]).unwrap() > 0);
    kettle.signal(Signal::TERM);
    kettle.messages().wait_for("finishing requests");
    kettle.folder.change_config("access.log", "other.log");
    assert!(kettle.ctl(&["reload"]).output().text().contains("about to end"));
    drop(client);
    let _ = kettle.ended();
    assert_eq!(targets(&kettle, "access.log", 1), [format!("200 /{LARGE}")]);
    assert!(!kettle.folder.path("other.log").exists());
}

#[test]
fn the_combined_format_ends_with_the_path_and_cannot_be_forged() {
    let mut kettle = Kettle::start(logging("combined"));
    let mut client = kettle.connect(TLS13_AES_128);
    let fields = "User-Agent: evil\" 200 \\ \u{7f}\r\n".replace('\u{7f}', "\t");
    assert_eq!(client.exchange(&request("GET", "/a", &fields)).status, 200);
    let _ = kettle.ctl(&["stop"]).succeed();
    let _ = kettle.ended();
    let text = fs::read_to_string(kettle.folder.path("access.log")).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(text.starts_with("127.") && text.contains("\"GET /a HTTP/1.1\" 200 7 "), "{text}");
    assert!(text.contains(" path=user ") && text.contains(" tls=TLSv1.3 "), "{text}");
    assert!(!text.contains("evil\" 200"), "{text}");
}

/// The statuses and targets of a log's lines, once it has so many, sorted.
fn targets(kettle: &Kettle, name: &str, lines: usize) -> Vec<String> {
    let path = kettle.folder.path(name);
    let deadline = Instant::now() + patience();
    let text = loop {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if text.lines().count() >= lines {
            break text;
        }
        assert!(Instant::now() < deadline, "{name} has no {lines} lines: {text}");
        std::thread::yield_now();
    };
    let target = |line: &str| {
        let entry: Value = serde_json::from_str(line).unwrap();
        format!("{} {}", entry["status"], entry["target"].as_str().unwrap_or_default())
    };
    let mut targets: Vec<String> = text.lines().map(target).collect();
    targets.sort();
    targets
}

#[test]
fn sites_and_routes_have_logs_of_their_own_over_both_protocols() {
    let setup = logging("json").listener("http2 = true").set("log", "buffer = 0");
    let setup = setup.site("access_log = \"site.log\"").more(
        "[[site.route]]\nprefix = \"/health\"\nroot = \"www\"\naccess_log = \"off\"\n\
         [[site.route]]\nprefix = \"/app\"\nroot = \"www\"\naccess_log = \"app.log\"\n",
    );
    let kettle = Kettle::start(setup);
    for version in ["--http1.1", "--http2"] {
        for target in ["/a", "/app/a", "/health/a", "/none"] {
            let words = [version, "--path-as-is", "--output", "/dev/null"];
            let _ = kettle.curl(&words, target).succeed();
        }
        // Where none is asked for, or none that is known, the connection's answers.
        let _ = kettle.curl(&[version, "--header", "Host: other.example"], "/other").succeed();
    }
    let mut client = kettle.connect(TLS13_AES_128);
    assert_eq!(client.exchange(b"nonsense\r\n\r\n").status, 400);
    assert_eq!(
        targets(&kettle, "site.log", 7),
        ["200 /a", "200 /a", "400 ", "404 /none", "404 /none", "421 /other", "421 /other"]
    );
    assert_eq!(targets(&kettle, "app.log", 2), ["200 /app/a"; 2]);
    assert_eq!(targets(&kettle, "access.log", 0), [""; 0]);
}

#[test]
fn a_rotation_and_a_reload_concern_the_logs_of_sites_too() {
    let setup = logging("json").set("log", "buffer = 0").site("access_log = \"site.log\"");
    let kettle = Kettle::start(setup);
    let mut client = kettle.connect(TLS13_AES_128);
    client.get("/a?1");
    assert_eq!(targets(&kettle, "site.log", 1), ["200 /a?1"]);
    fs::rename(kettle.folder.path("site.log"), kettle.folder.path("site.log.1")).unwrap();
    let _ = kettle.ctl(&["reopen"]).succeed();
    client.get("/a?2");
    assert_eq!(targets(&kettle, "site.log", 1), ["200 /a?2"]);
    kettle.folder.change_config("site.log", "missing/site.log");
    kettle.ctl(&["reload"]).fail("");
    kettle.messages().wait_for("missing to create it in");
    client.get("/a?3");
    assert_eq!(targets(&kettle, "site.log", 2), ["200 /a?2", "200 /a?3"]);
    kettle.reload_with("missing/site.log", "new.log");
    client.get("/a?4");
    assert_eq!(targets(&kettle, "new.log", 1), ["200 /a?4"]);
    kettle.reload_with("new.log", "off");
    client.get("/a?5");
    kettle.reload_with("access_log = \"off\"", "");
    client.get("/a?6");
    assert_eq!(targets(&kettle, "access.log", 1), ["200 /a?6"]);
    let old = fs::read_to_string(kettle.folder.path("new.log")).unwrap();
    assert_eq!(old.lines().count(), 1, "{old}");
}

#[test]
fn a_tunnel_is_in_the_log_of_the_site_that_was_asked_for() {
    let setup = Setup::default().set("log", "access = \"access.log\"").listener("kind = \"tls\"");
    let setup = setup.site("access_log = \"site.log\"\nbackend = \"app\"");
    let kettle = Kettle::start(setup.more(&backend("app", "", &[Backend::echoing()])));
    let mut client = kettle.connect(TLS13_AES_128);
    client.send(b"said").unwrap();
    assert_eq!(client.receive_exactly(4), b"said");
    drop(client);
    assert_eq!(targets(&kettle, "site.log", 1), ["null "]);
    let line = fs::read_to_string(kettle.folder.path("site.log")).unwrap();
    assert!(line.contains("\"backend\":\"app\"") && line.contains("\"end\":"), "{line}");
    assert_eq!(fs::read_to_string(kettle.folder.path("access.log")).unwrap(), "");
}

fn logging(format: &str) -> Setup {
    Setup::path("user")
        .file("www/a", "content")
        .set("log", "access = \"access.log\"")
        .set("log", &format!("format = {format:?}"))
}
