//! A folder, a configuration, a clock that only moves when told, and a way to ask.

use std::cell::Cell;
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kettle_config::{Config, Located, Route, Site, parse};
use kettle_exchange::request::{Head, Request};
use kettle_exchange::response::{Answer, Body, Edge, Held, LogNotes, Part, Response, write_head};
use kettle_http::Method;
use kettle_http::h1::parse::{ParseRequest, parse_request};
use kettle_http::range::ByteRange;
use kettle_runtime::clock::{Clock, DateLine};
use kettle_runtime::encoder::EncoderPermits;
use kettle_runtime::metrics::WorkerMetrics;
use kettle_runtime::open_file::OpenFile;
use kettle_runtime::spool::Spool;
use kettle_tls::stream::Received;

use crate::files::handler::Files;
use crate::guard::Guards;
use crate::respond::{Responder, respond};
use crate::route::Router;

/// The files there before the server starts.
pub(super) struct Stage {
    pub(super) folder: tempfile::TempDir,
    pub(super) config: Config,
}

pub(super) struct Server {
    pub(super) folder: tempfile::TempDir,
    pub(super) clock: TestClock,
    pub(super) responder: Responder,
    pub(super) router: Router,
}

pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
    pub(super) raw: Body,
    pub(super) notes: LogNotes,
    /// Until the reply is dropped.
    _held: Held,
}

/// Stands an hour after the test began, so that files written by the test are old.
#[derive(Clone)]
pub(super) struct TestClock {
    start: SystemTime,
    passed: Rc<Cell<Duration>>,
}

impl TestClock {
    pub(super) fn pass(&self, period: Duration) {
        self.passed.set(self.passed.get() + period);
    }
}

impl Clock for TestClock {
    fn wall(&self) -> SystemTime {
        self.start + self.passed.get()
    }

    fn monotonic(&self) -> Duration {
        self.passed.get()
    }
}

impl Stage {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        let config = Config::for_folder(&root, ([127, 0, 0, 1], 8443).into());
        Self { folder, config }
    }

    /// Writes a file below the root.
    pub(super) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.folder.path().join("root").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(super) fn site(mut self, change: impl FnOnce(&mut Site)) -> Self {
        change(&mut self.config.sites[0]);
        self
    }

    pub(super) fn route(self, change: impl FnOnce(&mut Route)) -> Self {
        self.site(|site| change(&mut site.routes[0]))
    }

    /// Takes a configuration whose site has these settings. Roots called `root` and `b` are the stage's folder and the folder `b` in
    /// it, and `ROOT` stands for the path of the first.
    pub(super) fn settings(mut self, settings: &str) -> Self {
        let folder = self.folder.path().join("root");
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:8443\"\n[[site]]\nnames = [\"localhost\"]\n\
             self_signed = true\n{settings}\n"
        );
        let text = text.replace("ROOT", &folder.display().to_string());
        self.config = parse(&text, "kettle.toml".as_ref()).unwrap();
        for route in self.config.sites.iter_mut().flat_map(|site| &mut site.routes) {
            let root = route.root.take().map(|root| match root.value.ends_with("b") {
                true => folder.join("b"),
                false => folder.clone(),
            });
            route.root = root.map(Located::not_written);
        }
        self
    }

    pub(super) fn open(self) -> Server {
        let clock = TestClock {
            start: SystemTime::now() + Duration::from_secs(3600),
            passed: Rc::default(),
        };
        let metrics = Arc::new(WorkerMetrics::default());
        let encoders = EncoderPermits::new(1, 4 << 20);
        let limits = &self.config.limits;
        let files = Files::with_clock(limits, metrics, encoders, Box::new(clock.clone()));
        let router =
            Router::build(&self.config, &Default::default(), &Default::default(), None).unwrap();
        let guards = Guards::with_clock(Box::new(clock.clone()));
        let responder = Responder {
            files,
            guards,
            pool: Rc::default(),
            spool: Spool::new(Path::new("/"), 0, 0, 0),
        };
        Server { folder: self.folder, clock, responder, router }
    }
}

impl Server {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("root").join(name)
    }

    /// GET with further field lines.
    pub(super) async fn get(&self, target: &str, fields: &[&str]) -> Reply {
        self.ask("GET", target, fields).await
    }

    /// True if the connection of a GET ends without a response.
    pub(super) async fn closes(&self, target: &str) -> bool {
        let text = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut request = Request::without_body(head(&text), Some("localhost"));
        let answer = respond(&self.responder, &self.router, &mut request).await;
        matches!(answer, Answer::Nothing(_))
    }

    pub(super) async fn ask(&self, method: &str, target: &str, fields: &[&str]) -> Reply {
        let mut text = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n");
        for field in fields {
            text.push_str(field);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        self.send(&text, Some("localhost"), false).await
    }

    pub(super) async fn send(&self, text: &str, server_name: Option<&str>, closes: bool) -> Reply {
        self.send_from([127, 0, 0, 1].into(), text, server_name, closes).await
    }

    pub(super) async fn send_from(
        &self,
        client: IpAddr,
        text: &str,
        server_name: Option<&str>,
        closes: bool,
    ) -> Reply {
        let head = head(text);
        let version = Some(head.version());
        let is_head = head.method() == Method::Head;
        let client = client.into();
        let mut request = Request::without_body(head, server_name);
        request.client = &client;
        let answer = respond(&self.responder, &self.router, &mut request).await;
        let Answer::Response(mut response) = answer else {
            unreachable!("no backend is asked here")
        };
        let date_line = DateLine::new().at(self.clock.wall());
        let notes = response.notes.take().map(|notes| *notes).unwrap_or_default();
        let edge = Edge { date_line, version, is_head, is_tls: true, closes, begins_tunnel: false };
        Reply { notes, ..Reply::new(response, &edge) }
    }
}

/// The head of a request that is known to be well-formed.
pub(crate) fn head(text: &str) -> Box<Head> {
    let limits = kettle_http::HeadLimits::default();
    let Ok(ParseRequest::Complete { head, .. }) = parse_request(text.as_bytes(), &limits) else {
        panic!("not a request: {text}");
    };
    Box::new(head.moved_to(Received::from(text.as_bytes().to_vec())))
}

impl Reply {
    /// Returns the bytes on the wire, written into a buffer that was used before.
    pub(super) fn new(mut response: Response, edge: &Edge) -> Self {
        let mut head = b"left over".to_vec();
        write_head(&mut head, &mut response, edge);
        let Response { status, body: raw, held: _held, .. } = response;
        let body = match &raw {
            Body::Empty => Vec::new(),
            Body::Memory(bytes) => bytes.to_vec(),
            Body::File { file, span } => read(file, *span),
            Body::Parts(parts) => parts.iter().flat_map(read_part).collect(),
            Body::Growing(_) | Body::Upstream(_) | Body::Encoded(_) => {
                unreachable!("no backend is asked here")
            }
        };
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        assert_eq!(head.matches("\r\ndate: ").count(), 1, "{head}");
        Self { status, head, body, raw, notes: LogNotes::default(), _held }
    }

    /// The value of a header that must not be there twice.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let start = format!("{name}: ");
        let mut values = self.head.lines().filter_map(|line| line.strip_prefix(start.as_str()));
        let value = values.next();
        assert_eq!(values.next(), None, "{name} is there twice: {}", self.head);
        value
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

fn read_part(part: &Part) -> Vec<u8> {
    match part {
        Part::Memory(bytes) => bytes.to_vec(),
        Part::File { file, span } => read(file, *span),
    }
}

fn read(file: &OpenFile, span: ByteRange) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(span.bytes).unwrap()];
    let file = fs::File::from(file.file().try_clone_to_owned().unwrap());
    file.read_exact_at(&mut bytes, span.start).unwrap();
    bytes
}

/// Sets a file's modification time.
pub(super) fn set_modified(path: &std::path::Path, seconds: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

/// The memory of the future that a function returns, in bytes.
pub(crate) fn future_bytes<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
    size_of::<F>()
}
