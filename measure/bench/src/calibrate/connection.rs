//! A TLS connection over loopback with both ends in this thread, and the clock of its sending side.
//!
//! With a second thread at the far end, waking it costs as much as a small response, and more
//! or less so by chance. Here nobody waits: the thread sends until the socket is full, then
//! stops the clock and throws away what has arrived.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::Ipv4Addr;
use std::task::{Context, Poll};
use std::time::Duration;

use kettle_kernel::{bug, process, socket, transfer};
use kettle_loadgen::offer::{Offer, ResumeBy};
use kettle_tls::identity::Identities;
use kettle_tls::policy::{Group, Policy, SiteGroup};
use kettle_tls::stream::{Accepting, Handshaking, Stream, StreamError};
use kettle_tls::tickets::SharedResumption;
use kettle_tls::{Acceptor, Acceptors, self_signed};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::{CIPHER, VERSION};

/// Both ends of a connection, and the processor time that sending has taken.
pub(super) struct Loopback {
    pub(super) sender: Box<Stream>,
    pub(super) receiver: Box<Stream>,
    spent: Duration,
    /// The thread's processor time when the clock was started; `None` while it is stopped.
    started: Option<Duration>,
}

impl Loopback {
    pub(super) async fn new() -> Result<Self, Box<dyn Error>> {
        let offer = Offer {
            version: VERSION,
            cipher: CIPHER,
            group: Group::X25519,
            resume_by: ResumeBy::Nothing,
            http2: None,
        };
        let connector = offer.dangerous_connector("localhost")?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let connected = TcpStream::connect(listener.local_addr()?).await?;
        let (accepted, peer) = listener.accept().await?;
        if peer != connected.local_addr()? {
            return Err("another process took the connection".into());
        }
        for end in [&accepted, &connected] {
            end.set_nodelay(true)?;
        }
        let acceptors = acceptors()?;
        let handshakes = async {
            tokio::try_join!(accept(accepted, &acceptors), Stream::connect(connected, &connector))
        };
        let (sender, receiver) = timeout(WAIT_MAX, handshakes).await??;
        socket::raise_not_sent_low_water(sender.socket())?;
        Ok(Self { sender, receiver, spent: Duration::ZERO, started: None })
    }

    pub(super) fn start_clock(&mut self) {
        self.spent = Duration::ZERO;
        self.started = Some(process::thread_cpu_time());
    }

    /// Stops the clock: the processor time since its start, without what discarding took.
    pub(super) fn stop_clock(&mut self) -> Duration {
        if let Some(started) = self.started.take() {
            self.spent += process::thread_cpu_time().saturating_sub(started);
        }
        self.spent
    }

    /// Repeats a call that sends until the socket takes something.
    pub(super) async fn send<T>(
        &mut self,
        mut call: impl FnMut(&mut Stream, &mut Context<'_>) -> Poll<Result<T, StreamError>>,
    ) -> Result<T, StreamError> {
        loop {
            let polled = poll_fn(|context| Poll::Ready(call(&mut self.sender, context))).await;
            match polled {
                Poll::Ready(outcome) => return outcome,
                Poll::Pending => self.make_room().await?,
            }
        }
    }

    /// Throws away what has arrived, with the clock stopped.
    pub(super) fn discard(&mut self) -> io::Result<()> {
        self.stop_clock();
        self.discard_arrived()?;
        self.started = Some(process::thread_cpu_time());
        Ok(())
    }

    async fn make_room(&mut self) -> io::Result<()> {
        self.stop_clock();
        if self.discard_arrived()? == 0 {
            // The bytes sent are still on their way to the other end.
            let sender = self.sender.tcp();
            let receiver = self.receiver.tcp();
            let moves = poll_fn(|context| {
                let is_ready = receiver.poll_read_ready(context).is_ready()
                    | sender.poll_write_ready(context).is_ready();
                if is_ready { Poll::Ready(()) } else { Poll::Pending }
            });
            timeout(WAIT_MAX, moves).await?;
        }
        self.started = Some(process::thread_cpu_time());
        Ok(())
    }

    fn discard_arrived(&mut self) -> io::Result<usize> {
        let mut total_bytes = 0;
        loop {
            let discard = || transfer::discard(self.receiver.socket(), DISCARD_BYTES);
            match self.receiver.tcp().try_io(Interest::READABLE, discard) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => total_bytes += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(total_bytes),
                Err(error) => return Err(error),
            }
        }
    }
}

/// The server's side, which agrees to nothing else.
fn acceptors() -> Result<Acceptors, Box<dyn Error>> {
    let names = self_signed::default_names(None);
    let mut identities = Identities::new();
    identities.add_site(&names, true, vec![self_signed::generate_in_memory(&names)?.into()]);
    let policy = Policy {
        versions: vec![VERSION],
        suites: vec![CIPHER],
        tickets_per_handshake: 0,
        ..Policy::default()
    };
    let resumption = SharedResumption::new(WAIT_MAX, 0)?;
    let acceptor =
        Acceptor::for_group(&policy, identities.into(), &resumption, &SiteGroup::default())?;
    Ok(acceptor.into())
}

async fn accept(socket: TcpStream, acceptors: &Acceptors) -> Result<Box<Stream>, StreamError> {
    let mut accepting = Accepting::begin(socket, &[], acceptors)?;
    loop {
        poll_fn(|context| accepting.poll_progress(context)).await?;
        match accepting.advance() {
            Handshaking::Continues(next) => accepting = next,
            Handshaking::Complete(mut stream) => {
                poll_fn(|context| stream.poll_flush(context)).await?;
                return Ok(stream);
            }
            Handshaking::Failed(error, _) => return Err(error),
            Handshaking::PlainHttp(..) | Handshaking::Challenged(_) => {
                return Err(bug!("our own client speaks TLS").into());
            }
        }
    }
}

/// More than a working loopback ever takes.
const WAIT_MAX: Duration = Duration::from_secs(5);
const DISCARD_BYTES: usize = 1024 * 1024;
