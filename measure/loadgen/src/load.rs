//! The definition of a load: whom to ask, over which TLS, by which load model, and what an answer must look like.
//!
//! These are plain values; [`crate::client`] carries them out.

use std::net::SocketAddr;
use std::time::Duration;

use kettle_kernel::process::cpus_allowed;

use crate::offer::Offer;

/// One load on one server.
#[derive(Clone, Debug)]
pub struct Load {
    /// The address of the server.
    pub target: SocketAddr,
    /// The name asked for, in the handshake and as `Host`.
    pub host: String,
    /// The request's path and query. For `{}` in it each request has a number that no other has, for `{9}` one of the numbers
    /// below 9, in turn, and for `{9~2}` one that is drawn at random: 2 is the seed.
    pub path: String,
    /// Header fields beside `Host`, as names and values. Over HTTP/2 the names are sent in small letters.
    pub headers: Vec<(String, String)>,
    /// TLS as it is offered, one choice each; `None` is plain HTTP.
    pub tls: Option<Offer>,
    pub reuse: Reuse,
    pub model: LoadModel,
    pub end: End,
    /// Left out of every figure, at the beginning.
    pub warm_up: Duration,
    pub expect: Expect,
    pub body: BodyUse,
    /// The processors the client's threads run on, a thread each.
    pub cpus: Vec<usize>,
    /// The number of source addresses of 127.0.0.0/8 the connections are spread over; a pair of addresses has some 28,000
    /// ports.
    pub sources: u8,
    /// A transaction that takes longer has failed.
    pub timeout: Duration,
}

impl Load {
    /// One request for `/` of `localhost`, over a plain connection and by one processor: what a load is that says nothing else.
    pub fn once(target: SocketAddr, timeout: Duration) -> Self {
        Self {
            target,
            host: "localhost".to_owned(),
            path: "/".to_owned(),
            headers: Vec::new(),
            tls: None,
            reuse: Reuse { requests_per_connection: Some(1), connections_per_session: 1 },
            model: LoadModel::Closed { connections: 1 },
            end: End::Requests { count: 1, at_most: timeout },
            warm_up: Duration::ZERO,
            expect: Expect::default(),
            body: BodyUse::Open,
            cpus: cpus_allowed().into_iter().take(1).collect(),
            sources: 1,
            timeout,
        }
    }
}

/// The use of connections and sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    /// Requests on one connection before it is closed; `None` keeps it to the end.
    pub requests_per_connection: Option<u32>,
    /// Connections with one TLS session: the first is a full handshake, the others resume it. 1 never resumes; at least 1.
    /// Which way of resuming is part of the [`Offer`].
    pub connections_per_session: u32,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadModel {
    /// Closed loop: each of a number of connections asks again as soon as it has its answer.
    Closed { connections: u32 },
    /// Open loop: transactions begin when they are due, whatever became of those before, and latency counts from then.
    Open {
        arrivals: Arrivals,
        /// More transactions than this under way at once are not begun and count as failed.
        transactions_max: u32,
    },
    /// Streaming clients: connections that stay; each asks for one object, thinks, asks for the next.
    Streaming {
        connections: u32,
        /// The mean time from one object's due time to the next on one connection: connections × object bytes / interval is the
        /// throughput, the same for every server. A client is due at a time drawn from ± `spread` around it.
        interval: Duration,
        /// Half the width of the uniform distribution around `interval`.
        spread: Duration,
    },
    /// Connections that make this many requests each and then stay idle until the end.
    Idle {
        connections: u32,
        /// Requests before falling silent; 0 is a handshake only.
        requests: u32,
    },
}

/// The number of transactions that are due in an open loop, evenly spaced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// The same number in every second.
    Constant { per_second: f64 },
    /// A rate that grows linearly over the whole load.
    Ramp { from: f64, to: f64 },
}

/// When a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// After this time, warm-up included.
    After(Duration),
    /// After a number of requests, warm-up included, and at the latest after the time.
    Requests {
        /// All connections together.
        count: u64,
        at_most: Duration,
    },
}

impl End {
    /// The time after which it has ended, warm-up included.
    pub fn at_most(self) -> Duration {
        match self {
            End::After(length) | End::Requests { at_most: length, .. } => length,
        }
    }
}

/// The form of a right answer; anything else is a failure with its own reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// The body's length in bytes; `None` takes the first answer's.
    pub body_bytes: Option<u64>,
    /// The body's SHA-256, for those answers that are opened and hashed.
    pub body_sha256: Option<[u8; 32]>,
}

/// The way a body is received, if a transaction has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyUse {
    /// Every record is opened, nothing is copied out.
    Open,
    /// Bodies are dropped in the kernel, unopened; one answer in `hash_one_in` is opened and hashed.
    Discard {
        /// At least 1.
        hash_one_in: u32,
    },
    /// There is none: a connection becomes a WebSocket, and a transaction is a message of the expected length there and back.
    Message,
}
