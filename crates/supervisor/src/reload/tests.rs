use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mkfifoat};

use super::*;

mod sockets;

/// A server without workers, configured by a file in a folder of its own.
struct Fixture {
    directory: tempfile::TempDir,
    live: RunningConfig,
    address: SocketAddr,
    seen: watch::Receiver<Arc<Snapshot>>,
    metrics: Arc<Metrics>,
}

impl Fixture {
    fn new() -> Self {
        Self::with(Resources::of_this_process())
    }

    fn with(resources: Resources) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("files")).unwrap();
        let address = free_address("127.0.0.1");
        write_config(&directory, address, "");
        let mut config = read(&path_of(&directory)).unwrap();
        resources.fill_in(&mut config, Some(2));
        let resumption = SharedResumption::new(Duration::from_secs(3600), 16).unwrap();
        let loaded = prepare(config, &resumption, &LoadFor::Start).unwrap_or_else(|diagnostics| {
            panic!("{}", diagnostics.iter().map(Diagnostic::to_string).collect::<String>())
        });
        let metrics = Arc::new(Metrics::new(2));
        let bound = bind(&loaded.served.config, 2, &[], &[]).unwrap();
        let log = AccessLog::start(
            &loaded.served.config.log,
            HashSet::new(),
            2,
            Arc::clone(&metrics.log_lines_dropped),
        )
        .unwrap();
        let path = path_of(&directory);
        let loader: Loader = Arc::new(move || read(&path));
        let live = RunningConfig::new(
            loaded,
            bound,
            resources,
            resumption,
            log,
            Arc::clone(&metrics),
            Some(loader),
        );
        let mut seen = live.subscribe(1).unwrap();
        seen.mark_unchanged();
        Self { directory, live, address, seen, metrics }
    }

    /// Writes a configuration on the first one's address, with `more` at its end.
    fn write(&self, more: &str) {
        write_config(&self.directory, self.address, more);
    }

    fn reload(&mut self) -> Result<(), Vec<Diagnostic>> {
        self.reload_within(Duration::from_secs(60))
    }

    fn reload_within(&mut self, time_max: Duration) -> Result<(), Vec<Diagnostic>> {
        self.reload_of(ReloadScope::Configuration, time_max)
    }

    fn reload_of(
        &mut self,
        subject: ReloadScope,
        time_max: Duration,
    ) -> Result<(), Vec<Diagnostic>> {
        let candidate = block_on(self.live.candidate(subject, time_max));
        self.live.commit(candidate)
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.live.bound().iter().map(|bound| bound.actual.socket().unwrap()).collect()
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn path_of(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("kettle.toml")
}

/// An address nobody listens on now.
fn free_address(host: &str) -> SocketAddr {
    std::net::TcpListener::bind((host, 0)).unwrap().local_addr().unwrap()
}

fn write_config(directory: &tempfile::TempDir, address: SocketAddr, more: &str) {
    let folder = directory.path().display();
    let text = format!(
        "[server]\nstate_directory = \"{folder}/state\"\n\n\
         [[listener]]\naddress = \"{address}\"\n\n\
         [[site]]\nnames = [\"localhost\"]\nself_signed = true\n\n\
         [[site.route]]\nroot = \"{folder}/files\"\n\n{more}"
    );
    std::fs::write(path_of(directory), text).unwrap();
}

#[test]
fn a_pipe_in_the_place_of_a_file_holds_no_reload() {
    let mut fixture = Fixture::new();
    let config = path_of(&fixture.directory);
    let pipe = fixture.directory.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let without = std::fs::read_to_string(&config).unwrap();
    let users = format!("[site.route.basic_auth]\nusers = \"{}\"\n", pipe.display());
    let secret = format!("[site.route.signed_urls]\nsecret = \"{}\"\n", pipe.display());
    for more in [users, secret] {
        fixture.write(&more);
        let diagnostics = fixture.reload_within(Duration::from_secs(20)).unwrap_err();
        assert!(diagnostics[0].message.contains("it is a pipe, not a file"), "{diagnostics:?}");
    }
    std::fs::rename(&pipe, &config).unwrap();
    let path = config.clone();
    fixture.live.loader = Some(Arc::new(move || read_within(&path, Duration::ZERO)));
    let diagnostics = fixture.reload().unwrap_err();
    assert!(diagnostics[0].message.contains("it is a pipe, not a file"), "{diagnostics:?}");
    std::fs::remove_file(&config).unwrap();
    std::fs::write(&config, without).unwrap();
    fixture.reload().unwrap();
}

#[test]
fn syntax_errors_keep_the_old_configuration() {
    let mut fixture = Fixture::new();
    let before = Arc::clone(&fixture.seen.borrow());
    fixture.write("[limits]\nidle_timeout = \"soon\"\n");
    let diagnostics = fixture.reload().unwrap_err();
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert_eq!(diagnostics[0].offending, "\"soon\"");
    assert!(!fixture.seen.has_changed().unwrap());
    assert!(Arc::ptr_eq(&before.served.config, &fixture.live.loaded().served.config));
    assert_eq!(fixture.metrics.reloads_refused.load(Relaxed), 1);
    assert_eq!(fixture.metrics.reloads_done.load(Relaxed), 0);
}

#[test]
fn a_missing_certificate_keeps_the_old_configuration() {
    let mut fixture = Fixture::new();
    let more = "[[site]]\nnames = [\"b.example\"]\n[[site.certificate]]\n\
                chain = \"missing.pem\"\nkey = \"missing.key\"\n\
                [[site.route]]\nroot = \"files\"\n";
    fixture.write(more);
    let diagnostics = fixture.reload().unwrap_err();
    let lines: Vec<usize> = diagnostics.iter().map(|diagnostic| diagnostic.line).collect();
    assert_eq!(lines, [17, 18], "{diagnostics:?}");
    assert!(!fixture.seen.has_changed().unwrap());
}

#[test]
fn an_address_in_use_keeps_the_old_configuration() {
    let mut fixture = Fixture::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    fixture.write(&format!("[[listener]]\naddress = \"{address}\"\n"));
    let diagnostics = fixture.reload().unwrap_err();
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert!(diagnostics[0].message.contains("is in use"), "{}", diagnostics[0]);
    assert!(!fixture.seen.has_changed().unwrap());
}

#[test]
fn a_log_that_cannot_be_opened_keeps_the_old_configuration() {
    let mut fixture = Fixture::new();
    let folder = fixture.directory.path().display();
    fixture.write(&format!("[log]\naccess = \"{folder}/files\"\n"));
    let diagnostics = fixture.reload().unwrap_err();
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert!(diagnostics[0].message.contains("access log"), "{}", diagnostics[0]);
    assert!(!fixture.seen.has_changed().unwrap());
}

/// If another address of the same port is listened on, they are for that.
#[test]
fn no_client_is_taken_for_a_reload_that_may_come_to_nothing() {
    let mut fixture = Fixture::new();
    let added = free_address("127.0.0.1");
    fixture.write(&format!("[[listener]]\naddress = \"{added}\"\nkind = \"redirect\"\n"));
    let candidate = block_on(fixture.live.candidate(ReloadScope::Configuration, Duration::MAX));
    let refused = std::net::TcpStream::connect(added).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    fixture.live.commit(candidate).unwrap();
    std::net::TcpStream::connect(added).unwrap();
}

#[test]
fn settings_of_the_process_are_reported_not_applied() {
    let mut fixture = Fixture::new();
    fixture.write("[admin]\nsocket = \"ctl\"\n");
    fixture.reload().unwrap();
    let warnings = &fixture.live.loaded().warnings;
    assert!(
        warnings
            .iter()
            .any(|warning| warning.message.contains("`admin.socket` changes at the next")),
        "{warnings:?}"
    );
}

#[test]
fn limits_that_workers_took_at_their_start_are_reported_not_dropped() {
    let mut fixture = Fixture::new();
    fixture.write(
        "[limits]\ndisk_timeout = \"9s\"\nopen_files = 9\nhot_file = 9\nhot_memory = 9\n\
         revalidate = \"9s\"\nidle_timeout = \"9s\"\n",
    );
    fixture.reload().unwrap();
    let warnings = &fixture.live.loaded().warnings;
    let reported: Vec<&str> =
        warnings.iter().filter_map(|warning| warning.message.split('`').nth(1)).collect();
    assert_eq!(
        reported,
        [
            "limits.disk_timeout",
            "limits.open_files",
            "limits.hot_file",
            "limits.hot_memory",
            "limits.revalidate"
        ]
    );
}

#[test]
fn memory_is_shared_by_the_workers_that_run_whatever_the_file_says_now() {
    let mut fixture = Fixture::with(Resources::in_a_group(8, None, Some(512)));
    let before = Arc::clone(&fixture.live.loaded().served.config);
    assert_eq!(before.server.workers, Some(8), "two run");
    fixture.reload().unwrap();
    assert_eq!(fixture.live.loaded().served.config.limits, before.limits);
}

#[test]
fn a_reload_keeps_the_generated_certificate() {
    let mut fixture = Fixture::new();
    let before = Arc::clone(&fixture.live.loaded().identities[0]);
    // As after a drop of privileges: the file cannot be read again.
    std::fs::remove_dir_all(fixture.directory.path().join("state")).unwrap();
    fixture.write("[limits]\nidle_timeout = \"10s\"\n");
    fixture.reload().unwrap();
    let loaded = fixture.live.loaded();
    assert!(Arc::ptr_eq(&before, &loaded.identities[0]));
    assert_eq!(loaded.served.config.limits.idle_timeout, Duration::from_secs(10));
}

/// The files lie here since long, and sites that name the same have the same.
#[test]
fn what_did_not_change_is_not_read_again_and_is_shared() {
    let mut fixture = Fixture::new();
    let of_tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tls/src/identity/fixtures");
    let chain = of_tls.join("leaf.pem");
    let key = of_tls.join("leaf-key-sec1.pem");
    let certificate = format!("certificate = [{{ chain = {chain:?}, key = {key:?} }}]");
    let site = |name: &str| {
        format!("[[site]]\nnames = [\"{name}\"]\n{certificate}\nroute = [{{ root = \".\" }}]\n")
    };
    fixture.write(&(site("one.example") + &site("two.example")));
    fixture.reload().unwrap();
    let identities = |fixture: &Fixture| fixture.live.loaded().identities.clone();
    let first = identities(&fixture);
    assert!(first.len() <= 2, "two sites have one between them: {first:?}");
    let warnings = fixture.live.loaded().warnings.len();
    // One that is refused loses nothing of what is known.
    fixture.write("[limits]\nidle_timeout = \"soon\"\n");
    assert!(fixture.reload().is_err());
    fixture.write(&(site("three.example") + &site("one.example") + &site("two.example")));
    fixture.reload().unwrap();
    let second = identities(&fixture);
    assert!(second.iter().all(|it| first.iter().any(|before| Arc::ptr_eq(before, it))));
    assert!(
        fixture.live.loaded().warnings.len() >= warnings,
        "what is wrong with it is said again"
    );
    fixture.reload_of(ReloadScope::Renewal, Duration::from_secs(60)).unwrap();
    assert!(
        identities(&fixture).iter().all(|it| second.iter().any(|before| Arc::ptr_eq(before, it)))
    );
}

#[test]
fn named_files_are_read_again_without_the_configuration() {
    let mut fixture = Fixture::new();
    let before = Arc::clone(&fixture.live.loaded().served.config);
    fixture.write("[limits]\nidle_timeout = \"soon\"\n");
    fixture.reload_of(ReloadScope::Renewal, Duration::from_secs(60)).unwrap();
    assert_eq!(fixture.live.loaded().served.config.limits, before.limits);
    assert!(fixture.seen.has_changed().unwrap());
    assert!(fixture.reload().is_err());
}

#[test]
fn a_disk_that_hangs_ends_a_reload_in_time_and_only_one_waits_for_it() {
    let mut fixture = Fixture::new();
    let path = path_of(&fixture.directory);
    let pipe = fixture.directory.path().join("pipe");
    // Opening a pipe waits for whoever writes to it.
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let text = std::fs::read(&path).unwrap();
    std::fs::rename(&pipe, &path).unwrap();
    let diagnostics = fixture.reload_within(Duration::from_millis(10)).map_err(texts).unwrap_err();
    assert!(diagnostics[0].contains("a disk hangs"), "{diagnostics:?}");
    let diagnostics = fixture.reload().map_err(texts).unwrap_err();
    assert!(diagnostics[0].contains("still waits for a disk"), "{diagnostics:?}");
    assert!(!fixture.seen.has_changed().unwrap());
    assert_eq!(fixture.metrics.reloads_refused.load(Relaxed), 2);

    // When the disk answers after all, that comes too late to be put in force, and further reloads are possible.
    std::fs::write(&path, &text).unwrap();
    drop(block_on(fixture.live.reader.acquire()).unwrap());
    assert!(!fixture.seen.has_changed().unwrap());
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &text).unwrap();
    fixture.reload().unwrap();
    assert!(fixture.seen.has_changed().unwrap());
}

#[test]
fn a_reload_under_way_when_the_server_stops_leaves_the_log_where_it_is() {
    for is_stopped in [true, false] {
        let mut fixture = Fixture::new();
        let other = fixture.directory.path().join("other.log");
        fixture.write(&format!("[log]\naccess = \"{}\"\n", other.display()));
        let path = path_of(&fixture.directory);
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel();
        let may_go_on = std::sync::Mutex::new(may_go_on);
        fixture.live.loader = Some(Arc::new(move || {
            begun.send(()).unwrap();
            may_go_on.lock().unwrap().recv().unwrap();
            read(&path)
        }));
        let live = &fixture.live;
        let candidate = live.candidate(ReloadScope::Configuration, Duration::from_secs(60));
        let stop = async {
            // The thread that reads is begun by the first turn of the candidate.
            tokio::task::spawn_blocking(move || has_begun.recv().unwrap()).await.unwrap();
            if is_stopped {
                live.stop();
            }
            go_on.send(()).unwrap();
        };
        let (candidate, ()) = block_on(async { tokio::join!(candidate, stop) });
        assert_eq!((candidate.is_ok(), other.exists()), (!is_stopped, !is_stopped));
    }
}

#[test]
fn a_candidate_of_before_the_stop_is_refused_and_counted() {
    let mut fixture = Fixture::new();
    let scope = ReloadScope::Configuration;
    let candidate = block_on(fixture.live.candidate(scope, Duration::from_secs(60)));
    assert!(candidate.is_ok());
    fixture.live.stop();
    let refused = fixture.live.commit(candidate).unwrap_err();
    let path = path_of(&fixture.directory);
    assert_eq!(refused, [Diagnostic::without_place(path, "the server is about to end", None)]);
    assert_eq!(fixture.metrics.reloads_refused.load(Relaxed), 1);
    assert!(!fixture.seen.has_changed().unwrap());
}

fn texts(diagnostics: Vec<Diagnostic>) -> Vec<String> {
    diagnostics.iter().map(Diagnostic::to_string).collect()
}

#[test]
fn keepalive_of_held_sockets_changes_with_the_commit_and_not_before() {
    let mut fixture = Fixture::new();
    let write = |fixture: &Fixture, keepalive: &str| {
        fixture.write("");
        let text = std::fs::read_to_string(path_of(&fixture.directory)).unwrap();
        let address = format!("address = \"{}\"\n", fixture.address);
        let text = text.replace(&address, &format!("{address}{keepalive}"));
        std::fs::write(path_of(&fixture.directory), text).unwrap();
    };
    let are_asked = |fixture: &Fixture| {
        let sockets = &fixture.live.bound()[0].sockets;
        sockets.iter().all(|socket| socket2::SockRef::from(&**socket).keepalive().unwrap())
    };
    let delivery = |fixture: &Fixture| {
        socket2::SockRef::from(&*fixture.live.bound()[0].sockets[0]).tcp_user_timeout().unwrap()
    };
    assert!(!are_asked(&fixture) && delivery(&fixture).is_none());
    write(&fixture, "keepalive = \"60s\"\n");
    let time_max = Duration::from_secs(60);
    let candidate = block_on(fixture.live.candidate(ReloadScope::Configuration, time_max));
    assert!(candidate.is_ok() && !are_asked(&fixture), "it may yet be refused");
    fixture.live.commit(candidate).unwrap();
    assert!(are_asked(&fixture));
    assert_eq!(delivery(&fixture), Some(Duration::from_secs(120)));
    write(&fixture, "keepalive = \"1s\"\n");
    fixture.reload().unwrap();
    assert_eq!(delivery(&fixture), Some(Duration::from_secs(60)), "as `write_timeout`");
    write(&fixture, "");
    fixture.reload().unwrap();
    assert!(!are_asked(&fixture) && delivery(&fixture).is_none());
}

#[test]
fn a_listener_moves_between_one_address_and_all() {
    let mut fixture = Fixture::new();
    let one = fixture.address;
    let mut all = fixture.address;
    all.set_ip(std::net::Ipv4Addr::UNSPECIFIED.into());
    for address in [all, one] {
        write_config(&fixture.directory, address, "");
        fixture.reload().unwrap();
        assert_eq!(fixture.addresses(), [address]);
    }
}

#[test]
fn a_reload_takes_no_address_that_the_next_start_could_not() {
    let mut fixture = Fixture::new();
    let one = fixture.address;
    write_config(&fixture.directory, one, &format!("[[listener]]\naddress = \"{one}\"\n"));
    let diagnostics = fixture.reload().unwrap_err();
    assert!(diagnostics[0].to_string().contains(&format!("listens on {one} already")));
    assert_eq!(fixture.addresses(), [one]);
}

/// Each way round, and both at once as at a start.
#[test]
fn a_port_of_one_address_stands_beside_that_of_all() {
    let mut fixture = Fixture::new();
    let one = fixture.address;
    let other = free_address("127.0.0.1");
    let all = |it: SocketAddr| SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), it.port());
    for expected in [&[one, all(one)][..], &[all(one)], &[all(one), one], &[other, all(other)]] {
        let more = expected.get(1).map(|it| format!("[[listener]]\naddress = \"{it}\"\n"));
        write_config(&fixture.directory, expected[0], &more.unwrap_or_default());
        fixture.reload().unwrap_or_else(|it| panic!("{expected:?}: {}", it[0]));
        assert_eq!(fixture.addresses(), expected);
    }
}

#[test]
fn an_address_may_come_back_before_workers_have_left_it() {
    let mut fixture = Fixture::new();
    let first = fixture.address;
    let other = free_address("127.0.0.1");
    let old = Arc::clone(&fixture.seen.borrow());
    for address in [other, first] {
        write_config(&fixture.directory, address, "");
        fixture.reload().unwrap();
        assert_eq!(fixture.addresses(), [address]);
    }
    let missed = fixture.seen.borrow_and_update().take_missed();
    assert_eq!(missed.len(), 1, "the worker has to leave an address that it has not seen");
    drop(old);
}

#[test]
fn nothing_of_an_old_configuration_stays_and_no_worker_is_the_last_to_have_it() {
    let mut fixture = Fixture::new();
    let before = Arc::clone(&*fixture.seen.borrow_and_update());
    let served = Arc::downgrade(&before.served);
    let config = Arc::downgrade(&before.served.config);
    fixture.reload().unwrap();
    fixture.live.drop_retired();
    // The last connection of before.
    drop(before);
    assert!(served.strong_count() == 1, "it was dropped where it was let go of");
    fixture.live.drop_retired();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while served.strong_count() + config.strong_count() > 0 {
        assert!(std::time::Instant::now() < deadline, "somebody keeps what was in force");
        std::thread::yield_now();
    }
}
