//! Clients that are lost without a word: no FIN and no RST tells of it, and nothing that is sent to them arrives.
//!
//! While nothing is on its way to one, keep-alive asks. While something is, the kernel sends that again and again and asks
//! nothing.

use super::leaves::{Asking, tunnel, upgraded};
use super::*;
use crate::http2::frames::DATA;

/// Where its request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    BeforeHead,
    InBody,
    InTunnel,
}

use Place::*;

/// A client that is lost at some place, over this version of HTTP.
#[derive(Clone, Copy, Debug)]
struct Case {
    version: u8,
    place: Place,
    /// True if something is sent to it that does not arrive.
    is_sent_more: bool,
}

/// One that is lost, with the server's side of its request.
struct Lost {
    case: Case,
    asking: Asking,
    server: TcpStream,
}

fn all_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for version in [1, 2] {
        for place in [BeforeHead, InBody, InTunnel] {
            for is_sent_more in [false, true] {
                cases.push(Case { version, place, is_sent_more });
            }
        }
    }
    cases
}

impl Case {
    /// The target that it asks for. All tunnels ask for the same.
    fn target(self) -> String {
        format!("/app/{}/{:?}/{}", self.version, self.place, self.is_sent_more)
    }

    fn lose(self, kettle: &Kettle, backend: &Backend) -> Lost {
        let (mut asking, mut server) = if self.place == InTunnel {
            tunnel(kettle, backend, self.version)
        } else {
            let asking = Asking::get(kettle, self.version, &self.target());
            (asking, backend.accept())
        };
        let more = match self.place {
            BeforeHead => {
                read_head(&mut server);
                "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
            }
            InBody => {
                answer(&mut server, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nsome");
                "more"
            }
            InTunnel => "more",
        };
        match &mut asking {
            Asking::Http1(client) if self.place == InBody => {
                assert_eq!(client.response_head().status, 200);
                assert_eq!(client.receive_exactly(7), b"4\r\nsome");
            }
            Asking::Http1(_) => {}
            Asking::Http2(frames) => {
                if self.place == InBody {
                    assert_eq!(frames.next_of(DATA).payload, b"some");
                }
                frames.ping();
            }
        }
        asking.client().wire.lose();
        if self.is_sent_more {
            server.write_all(more.as_bytes()).unwrap();
        }
        Lost { case: self, asking, server }
    }
}

impl Lost {
    fn assert_let_go(mut self, kettle: &Kettle) {
        let Self { case, server, asking } = &mut self;
        let end = read_to_end(server).1;
        let is_over = end.as_ref().err().is_none_or(|it| it.kind() == ErrorKind::ConnectionReset);
        assert!(is_over, "{case:?}: {end:?}");
        match case.place {
            BeforeHead => {
                let entry = kettle.entry(&case.target());
                let words = (entry.number("status"), entry.text("upstream_failure"));
                assert_eq!(words, (499, "client_gone"), "{case:?}");
            }
            InBody => {
                let entry = kettle.entry(&case.target());
                assert!(!entry.is_complete(), "{case:?}");
            }
            InTunnel => assert_eq!(kettle.tunnel().text("end"), "client_reset", "{case:?}"),
        }
        // It was there to the last, and said nothing.
        assert!(asking.client().wire.socket.peer_addr().is_ok());
    }
}

fn front(backend: &Backend) -> Kettle {
    let route = "websocket = true\nearly_hints = \"all\"\ntimeout = \"10m\"";
    let setup = before(route, "", &[backend.address()]);
    let setup = setup.listener("http2 = true\nkeepalive = \"1s\"");
    Kettle::start(setup.set("limits", "write_timeout = \"5s\""))
}

#[test]
fn each_is_let_go_alone() {
    std::thread::scope(|threads| {
        for case in all_cases() {
            threads.spawn(move || {
                let backend = Backend::listen();
                let kettle = front(&backend);
                case.lose(&kettle, &backend).assert_let_go(&kettle);
            });
        }
    });
}

#[test]
fn all_are_let_go_at_once() {
    let backend = Backend::listen();
    let kettle = front(&backend);
    let lost: Vec<_> = all_cases().into_iter().map(|it| it.lose(&kettle, &backend)).collect();
    for lost in lost {
        lost.assert_let_go(&kettle);
    }
}

/// It acknowledges each question for room that it has none.
#[test]
fn one_that_takes_nothing_for_long_is_not_lost_in_a_tunnel() {
    let backend = Backend::listen();
    let kettle = front(&backend);
    let paused = Asking::Http1(Dialer::default().reading_slowly().connect(kettle.address()));
    let (mut paused, mut server) = upgraded(paused, &backend);
    let writing = std::thread::spawn(move || {
        server.write_all(&[b'x'; MUCH_BYTES]).unwrap();
        server
    });
    let case = Case { version: 1, place: InTunnel, is_sent_more: true };
    case.lose(&kettle, &backend).assert_let_go(&kettle);
    assert!(paused.client().receive_exactly(MUCH_BYTES).iter().all(|&byte| byte == b'x'));
    drop(writing.join().unwrap());
}

/// More than all buffers on the way hold.
const MUCH_BYTES: usize = 16 << 20;
