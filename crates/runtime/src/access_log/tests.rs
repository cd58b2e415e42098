use std::collections::HashSet;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, UNIX_EPOCH};

use kettle_config::{Log, LogFormat, LogTarget};
use kettle_tls::{Cipher, Resumption, Session, Version};
use rustix::fs::{CWD, Mode, mkfifoat};

use super::escape::{write_combined_field, write_json_string};
use super::format::{TimeTexts, write_combined, write_combined_plain, write_json, write_short};
use super::writer::{Command, Writer};
use super::{AccessLog, BACKLOG_BUFFERS, Destination, RequestId, ResponseEntry, WorkerLog};
use crate::tx_path::{Reason, TxPath};

static SESSION: LazyLock<Session> = LazyLock::new(|| Session {
    version: Version::Tls13,
    cipher: Cipher::Aes128Gcm,
    suite: "TLS13_AES_128_GCM_SHA256",
    group: "X25519",
    resumed: Resumption::Ticket,
    server_name: Some("example.org".into()),
    alpn: None,
    is_certificate_asked: false,
    peer: None,
    ticket_epoch: None,
    audience: None,
});

static ID: LazyLock<RequestId> = LazyLock::new(|| RequestId::said(b"abc-1").unwrap());

fn entry() -> ResponseEntry<'static> {
    ResponseEntry {
        time: UNIX_EPOCH + Duration::from_millis(1_795_295_747_042),
        remote: SocketAddr::from(([192, 0, 2, 7], 40_000)).into(),
        host: Some(b"example.org:8443"),
        method: b"GET",
        target: b"/a?b",
        version: "HTTP/1.1",
        status: 200,
        user: None,
        refusal: None,
        cache: None,
        upstream: None,
        bytes_sent: 70_300,
        body_bytes: 70_000,
        path: TxPath::User,
        reason: Some(Reason::KernelLacksSuite),
        session: Some(&SESSION),
        referer: None,
        user_agent: Some(b"curl/8"),
        duration: Duration::from_micros(1_234),
        connection: 9,
        request_number: 2,
        request_id: &ID,
        completed: true,
    }
}

/// Writes an entry in a format.
fn line(
    write: impl Fn(&mut Vec<u8>, &mut TimeTexts, &ResponseEntry<'_>),
    entry: &ResponseEntry<'_>,
) -> String {
    let mut out = Vec::new();
    write(&mut out, &mut TimeTexts::default(), entry);
    String::from_utf8(out).unwrap()
}

fn json_line(entry: &ResponseEntry<'_>) -> serde_json::Value {
    serde_json::from_str(&line(write_json, entry)).unwrap()
}

fn json_string(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    write_json_string(&mut out, bytes);
    String::from_utf8(out).unwrap()
}

fn settings(path: &Path) -> Log {
    Log {
        access: LogTarget::Path(path.to_owned()),
        format: LogFormat::Combined,
        buffer: 64 * 1024,
        ..Log::default()
    }
}

fn started(directory: &tempfile::TempDir) -> (PathBuf, AccessLog, WorkerLog, Arc<AtomicU64>) {
    let path = directory.path().join("access.log");
    let dropped = Arc::new(AtomicU64::new(0));
    let log = AccessLog::start(&settings(&path), HashSet::new(), 1, Arc::clone(&dropped)).unwrap();
    let worker = log.worker(0).unwrap();
    (path, log, worker, dropped)
}

/// Holds that a log that has no line yet still takes one.
fn takes_a_line(path: &Path, log: AccessLog, worker: &WorkerLog) {
    worker.record(&Destination::Common, &entry());
    drop(log);
    assert_eq!(lines_of(path), 1);
}

fn lines_of(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap().lines().count()
}

#[test]
fn json_line_has_every_field() {
    assert_eq!(
        line(write_json, &entry()),
        concat!(
            r#"{"time":"2026-11-21T21:15:47.042Z","remote":"192.0.2.7","remote_port":40000,"#,
            r#""server_name":"example.org","host":"example.org:8443","method":"GET","#,
            r#""target":"/a?b","version":"HTTP/1.1","status":200,"bytes_sent":70300,"#,
            r#""body_bytes":70000,"path":"user","reason":"kernel_lacks_suite","#,
            r#""tls_version":"TLSv1.3","suite":"TLS13_AES_128_GCM_SHA256","group":"X25519","#,
            r#""resumed":"ticket","user_agent":"curl/8","duration_us":1234,"connection":9,"#,
            r#""request":2,"request_id":"abc-1","completed":true}"#,
            "\n"
        )
    );
}

#[test]
fn combined_line_starts_as_other_servers_write_it() {
    assert_eq!(
        line(write_combined, &entry()),
        concat!(
            r#"192.0.2.7 - - [21/Nov/2026:21:15:47 +0000] "GET /a?b HTTP/1.1" 200 70000 "-" "#,
            r#""curl/8" path=user reason=kernel_lacks_suite tls=TLSv1.3 "#,
            r#"suite=TLS13_AES_128_GCM_SHA256 group=X25519 resumed=ticket "#,
            r#"host="example.org:8443" server_name="example.org" bytes_sent=70300 "#,
            r#"duration_us=1234 connection=9 request=2 request_id=abc-1 completed=true"#,
            "\n"
        )
    );
}

#[test]
fn a_plain_line_has_the_fields_that_others_count() {
    let expected = "192.0.2.7 - - [21/Nov/2026:21:15:47 +0000] \"GET /a?b HTTP/1.1\" 200 70000 \"-\" \"curl/8\"\n";
    assert_eq!(line(write_combined_plain, &entry()), expected);
}

#[test]
fn a_port_that_nobody_said_is_left_out() {
    let remote = SocketAddr::from(([192, 0, 2, 7], 0));
    let line = json_line(&ResponseEntry { remote: remote.into(), ..entry() });
    assert_eq!((&line["remote"], line.get("remote_port")), (&"192.0.2.7".into(), None));
}

#[test]
fn a_line_of_plain_http_says_nothing_of_tls() {
    let entry = ResponseEntry { session: None, reason: None, status: 308, ..entry() };
    let json = json_line(&entry);
    assert_eq!((&json["status"], &json["host"]), (&308.into(), &"example.org:8443".into()));
    for name in ["server_name", "tls_version", "suite", "group", "resumed", "client"] {
        assert_eq!(json.get(name), None, "{name}");
    }
    let line = line(write_combined, &entry);
    assert!(line.contains(" path=user reason=- tls=- suite=- group=- resumed=- host="), "{line}");
    assert!(line.contains(" server_name=\"-\" "), "{line}");
}

#[test]
fn hostile_bytes_leave_json_valid_and_on_one_line() {
    let hostile: Vec<u8> = (0..=255).collect();
    let entry = ResponseEntry {
        method: &hostile,
        target: &hostile,
        host: Some(&hostile),
        referer: Some(&hostile),
        user_agent: Some(&hostile),
        ..entry()
    };
    assert_eq!(line(write_json, &entry).matches('\n').count(), 1);
    let latin: String = hostile.iter().map(|byte| char::from(*byte)).collect();
    assert_eq!(json_line(&entry)["target"], latin);
}

#[test]
fn hostile_bytes_leave_combined_on_one_line_of_printable_ascii() {
    let hostile: Vec<u8> = (0..=255).collect();
    let entry = ResponseEntry { target: &hostile, user_agent: Some(&hostile), ..entry() };
    let line = line(write_combined, &entry);
    let line = line.strip_suffix('\n').unwrap();
    assert!(line.bytes().all(|byte| matches!(byte, 0x20..=0x7e)));
}

#[test]
fn quotes_cannot_end_a_field() {
    let mut out = Vec::new();
    write_combined_field(&mut out, b"a\" 200 \\x");
    assert_eq!(out, br"a\x22 200 \x5cx");
    assert_eq!(json_string(b"a\"\\"), r#""a\"\\""#);
}

#[test]
fn valid_utf8_stays_and_control_characters_do_not() {
    assert_eq!(json_string("Füße \u{1f375}".as_bytes()), "\"Füße \u{1f375}\"");
    assert_eq!(
        json_string("a\u{1b}[2J\u{9b}2J\r\n".as_bytes()),
        r#""a\u001b[2J\u009b2J\u000d\u000a""#
    );
    assert_eq!(json_string(b"\xc3("), r#""\u00c3(""#);
}

#[test]
fn unparsed_request_has_a_dash_for_its_line() {
    let entry = ResponseEntry { method: b"", target: b"", version: "", status: 400, ..entry() };
    let line = line(write_combined, &entry);
    assert!(line.contains(r#"] "-" 400 "#), "{line}");
}

#[test]
fn lines_are_written_before_the_log_ends() {
    let directory = tempfile::tempdir().unwrap();
    let (path, log, worker, _) = started(&directory);
    worker.record(&Destination::Common, &entry());
    worker.record(&Destination::Common, &entry());
    drop(log);
    assert_eq!(lines_of(&path), 2);
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn reopen_follows_a_rotation() {
    let directory = tempfile::tempdir().unwrap();
    let (path, log, worker, _) = started(&directory);
    worker.record(&Destination::Common, &entry());
    let rotated = directory.path().join("access.log.1");
    std::fs::rename(&path, &rotated).unwrap();
    block_on(log.reopen()).unwrap();
    worker.record(&Destination::Common, &entry());
    worker.record(&Destination::Common, &entry());
    drop(log);
    assert_eq!(lines_of(&rotated), 1);
    assert_eq!(lines_of(&path), 2);
}

#[test]
fn settings_that_cannot_be_opened_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (path, log, worker, _) = started(&directory);
    let missing = settings(&directory.path().join("missing/access.log"));
    assert!(block_on(log.reconfigure(&missing, HashSet::new())).is_err());
    takes_a_line(&path, log, &worker);
}

#[test]
fn a_log_turned_off_takes_no_lines() {
    let directory = tempfile::tempdir().unwrap();
    let (path, log, worker, dropped) = started(&directory);
    block_on(log.reconfigure(&Log { access: LogTarget::Off, ..settings(&path) }, HashSet::new()))
        .unwrap();
    worker.record(&Destination::Common, &entry());
    drop(log);
    assert_eq!(lines_of(&path), 0);
    assert_eq!(dropped.load(Relaxed), 0);
}

#[test]
fn lines_beyond_the_backlog_are_dropped_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (path, log, _, dropped) = started(&directory);
    let (stuck, room) = without_writer(&log);
    for _ in 0..room + 5 {
        stuck.record(&Destination::Common, &entry());
    }
    assert_eq!(dropped.load(Relaxed), 5);
    drop(log);
    assert_eq!(lines_of(&path), 0, "the stuck worker's buffer has no writer");
}

#[test]
fn a_full_disk_is_counted_as_dropped_lines() {
    let dropped = Arc::new(AtomicU64::new(0));
    let full = settings(Path::new("/dev/full"));
    let log = AccessLog::start(&full, HashSet::new(), 1, Arc::clone(&dropped)).unwrap();
    let worker = log.worker(0).unwrap();
    for _ in 0..3 {
        worker.record(&Destination::Common, &entry());
    }
    drop(log);
    assert_eq!(dropped.load(Relaxed), 3);
}

#[test]
fn lines_for_a_log_of_its_own_go_there_and_count_as_all_do() {
    let directory = tempfile::tempdir().unwrap();
    let [common, own] = ["common", "own"].map(|name| directory.path().join(name));
    let target = LogTarget::Path(own.clone());
    let log_settings = Log { access: LogTarget::Off, ..settings(&common) };
    let dropped = Arc::new(AtomicU64::new(0));
    let log =
        AccessLog::start(&log_settings, [target.clone()].into(), 1, Arc::clone(&dropped)).unwrap();
    let worker = log.worker(0).unwrap();
    let site = Destination::new(&target, &log_settings);
    assert!(worker.is_on(&site) && !worker.is_on(&Destination::Common));
    worker.record(&site, &entry());
    worker.record(&Destination::Common, &entry());
    worker.record(&Destination::Nowhere, &entry());
    block_on(log.reopen()).unwrap();
    assert_eq!(lines_of(&own), 1);
    // A response may end when its site has another log already, or none.
    block_on(log.reconfigure(&settings(&common), HashSet::new())).unwrap();
    worker.record(&site, &entry());
    worker.record(&Destination::Common, &entry());
    drop(log);
    assert_eq!((lines_of(&own), lines_of(&common)), (2, 1));
    assert_eq!(dropped.load(Relaxed), 0);
}

#[test]
fn a_log_of_its_own_that_cannot_be_opened_is_named_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (path, log, worker, _) = started(&directory);
    let other = settings(&directory.path().join("other"));
    let missing = LogTarget::Path(directory.path().join("missing/own.log"));
    let refusal = block_on(log.reconfigure(&other, [missing.clone()].into())).unwrap_err();
    assert_eq!(refusal.target, Some(missing));
    takes_a_line(&path, log, &worker);
}

#[test]
fn the_bound_of_a_worker_holds_for_all_its_logs_together() {
    let directory = tempfile::tempdir().unwrap();
    let (_, log, _, dropped) = started(&directory);
    let (stuck, room) = without_writer(&log);
    let own = |name: &str| Destination::Own(Arc::new(LogTarget::Path(name.into())));
    for destination in [own("/a"), own("/b"), Destination::Common].iter().cycle().take(room + 5) {
        stuck.record(destination, &entry());
    }
    assert_eq!(dropped.load(Relaxed), 5);
    drop(log);
}

/// A worker whose buffer no writer ever takes, and the number of lines that it has room for.
fn without_writer(log: &AccessLog) -> (WorkerLog, usize) {
    let buffer_bytes = 8 * 1024;
    log.shared.buffer_bytes.store(buffer_bytes, Relaxed);
    let worker = WorkerLog { pending: Arc::default(), ..log.worker(0).unwrap() };
    let line = line(write_combined, &entry());
    (worker, (buffer_bytes * BACKLOG_BUFFERS).div_ceil(line.len()))
}

#[test]
fn a_pipe_that_nobody_reads_holds_up_neither_a_reload_nor_the_end() {
    let (reader, writer) = std::io::pipe().unwrap();
    let path = Path::new("/proc/self/fd").join(writer.as_raw_fd().to_string());
    let log = AccessLog::start(&settings(&path), HashSet::new(), 1, Arc::default()).unwrap();
    let worker = log.worker(0).unwrap();
    // More than a pipe holds, so that the writer has something to be stuck with.
    for _ in 0..PIPE_BYTES_USUAL / 64 {
        worker.record(&Destination::Common, &entry());
    }
    let refusal = block_on(log.reopen()).unwrap_err();
    assert_eq!(refusal.error.kind(), std::io::ErrorKind::TimedOut);
    drop(log);
    drop(reader);
}

#[test]
fn settings_that_nobody_waits_for_any_more_are_not_taken() {
    let directory = tempfile::tempdir().unwrap();
    let before = directory.path().join("before");
    let after = directory.path().join("after");
    let writer =
        Writer::open(&settings(&before), HashSet::new(), Vec::new(), Arc::default()).unwrap();
    let (commands, received) = std::sync::mpsc::sync_channel(2);
    let (reply, _) = tokio::sync::oneshot::channel();
    commands.send(Command::Reconfigure(settings(&after), HashSet::new(), reply)).unwrap();
    drop(commands);
    writer.run(&received);
    assert!(!after.exists());
}

#[test]
fn a_pipe_that_nobody_reads_is_refused_and_the_log_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (path, log, worker, _) = started(&directory);
    let pipe = directory.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let refusal = block_on(log.reconfigure(&settings(&pipe), HashSet::new())).unwrap_err();
    assert_ne!(refusal.error.kind(), std::io::ErrorKind::TimedOut);
    takes_a_line(&path, log, &worker);
}

const PIPE_BYTES_USUAL: usize = 64 * 1024;

#[test]
fn the_short_format_is_for_people() {
    let short = |entry: &ResponseEntry<'_>| line(write_short, entry);
    let line = short(&entry());
    let (time, rest) = line.split_at(8);
    assert!(time.bytes().all(|byte| byte.is_ascii_digit() || byte == b':'), "{line}");
    assert_eq!(rest, " 200 GET /a?b 70000 B 1.2 ms user 192.0.2.7\n");
    let odd = ResponseEntry { method: b"", target: b"", status: 400, completed: false, ..entry() };
    assert!(short(&odd).ends_with(" 400 - 70000 B 1.2 ms user 192.0.2.7 cut short\n"));
    // Nothing a client sends moves the cursor.
    let hostile = ResponseEntry { target: b"/\x1b[2J", ..entry() };
    assert!(short(&hostile).contains("/\\x1b[2J"), "{}", short(&hostile));
}
