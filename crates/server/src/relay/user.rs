//! Bytes that go through this process: opened, sealed where they were received, or copied as they are.

use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll, ready};

use kettle_kernel::{bug, transfer};
use kettle_tls::stream::{Filled, Stream};
use kettle_upstream::UNTAKEN_BYTES_MAX;
use kettle_upstream::backend::Socket;

use super::direction::{Direction, Fault};
use super::side::{Side, TunnelStream};

impl Direction {
    /// Opens records and gives the other side the plaintext where it lies; what is not taken at once is kept.
    pub(super) fn poll_open(
        &mut self,
        from: &mut Stream,
        to: &mut Side,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        let Self { queue, flow, .. } = self;
        let mut refused = None;
        let filled = from.poll_visit(context, |plaintext| {
            if refused.is_some() || plaintext.is_empty() {
                return;
            }
            let taken_bytes = match to {
                _ if !queue.is_empty() => Ok(0),
                Side::Plain(to) => to.try_send(plaintext).map_err(Fault::refused_by),
                Side::Tls(to) if !to.is_offloaded() => {
                    to.seal(&[plaintext]).map(|()| plaintext.len()).map_err(Fault::sink)
                }
                Side::Tls(_) | Side::Stream(_) | Side::Closed => Ok(0),
            };
            match taken_bytes {
                Ok(bytes) => {
                    flow.bytes += bytes as u64;
                    match plaintext.get(bytes..) {
                        Some([]) => {}
                        Some(left) => queue.append(left),
                        None => refused = Some(Fault::refused_by(taken_twice())),
                    }
                }
                Err(fault) => refused = Some(fault),
            }
        });
        if let Some(fault) = refused {
            // A key was asked for in the same read: what is queued to say so is not the end of anything.
            if from.is_key_refused() {
                from.cut();
            }
            return Poll::Ready(Err(fault));
        }
        match ready!(filled) {
            Ok(Filled::Data) => {}
            Ok(Filled::Closed) if from.is_key_refused() => {
                return Poll::Ready(Err(Fault::KeyRefused));
            }
            Ok(Filled::Closed) => self.close(),
            Ok(Filled::Truncated) => return Poll::Ready(Err(Fault::Truncated)),
            Err(error) => return Poll::Ready(Err(Fault::Source(error))),
        }
        Poll::Ready(Ok(()))
    }

    /// Receives where records keep their plaintext, and seals it there.
    pub(super) fn poll_seal(
        &mut self,
        from: &Socket,
        to: &mut Stream,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        // Room is taken for what is there, not for what may come.
        ready!(from.poll_readable(context)).map_err(Fault::source)?;
        let was_emptied = self.seal_received(from, to)?;
        // Then only the end makes it readable still, which goes with what came before it.
        if was_emptied && from.poll_readable(context).is_ready() {
            self.seal_received(from, to)?;
        }
        Poll::Ready(Ok(()))
    }

    /// Receives once; says whether it got something, and all there was.
    fn seal_received(&mut self, from: &Socket, to: &mut Stream) -> Result<bool, Fault> {
        let mut room = to.record_room(&[], self.intake.bytes()).map_err(Fault::sink)?;
        let wanted_bytes = room.bytes();
        let received = room.lend(|slices| {
            from.try_receive(wanted_bytes, |fd| transfer::receive_vectored(fd, slices))
        });
        let received = received.map_err(Fault::source)?;
        let bytes = received.unwrap_or(0);
        room.commit(bytes).map_err(Fault::sink)?;
        match received {
            None => Ok(false),
            Some(0) => self.close_plain().map(|()| false),
            Some(bytes) => {
                self.flow.bytes += bytes as u64;
                let is_full = bytes == wanted_bytes;
                self.intake.note(is_full);
                Ok(!is_full)
            }
        }
    }

    /// From socket to socket as the bytes are; what is not taken at once is kept.
    pub(super) fn poll_copy(
        &mut self,
        from: &Socket,
        to: &Socket,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        ready!(from.poll_readable(context)).map_err(Fault::source)?;
        SCRATCH.with_borrow_mut(|scratch| {
            let Some(received) = self.receive(from, scratch)? else { return Poll::Ready(Ok(())) };
            let sent_bytes = to.try_send(received).map_err(Fault::refused_by)?;
            self.flow.bytes += sent_bytes as u64;
            match received.get(sent_bytes..) {
                Some([]) => {}
                Some(left) => self.queue.append(left),
                None => return Poll::Ready(Err(Fault::refused_by(taken_twice()))),
            }
            Poll::Ready(Ok(()))
        })
    }

    /// From a stream into the queue, a frame at a time.
    pub(super) fn poll_receive_stream(
        &mut self,
        from: &mut dyn TunnelStream,
        to: &Side,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        let received = ready!(from.poll_receive(context)).map_err(Fault::source)?;
        if from.is_probing() && to.unacknowledged_bytes() <= UNTAKEN_BYTES_MAX {
            from.note_passed_on();
        }
        match received {
            Some(data) => self.queue.append(&data),
            None => self.close(),
        }
        Poll::Ready(Ok(()))
    }

    /// From a socket into the queue, for a stream.
    pub(super) fn poll_receive_plain(
        &mut self,
        from: &Socket,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        ready!(from.poll_readable(context)).map_err(Fault::source)?;
        Poll::Ready(self.receive_into_queue(from))
    }

    /// The bytes that are held go into a stream.
    pub(super) fn poll_send_stream(
        &mut self,
        to: &mut dyn TunnelStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.queue.is_empty() {
            let sent_bytes = ready!(to.poll_send(context, self.queue.filled()))?;
            self.queue.consume(sent_bytes);
            self.flow.bytes += sent_bytes as u64;
            self.flow.path = to.path();
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn receive_into_queue(&mut self, from: &Socket) -> Result<(), Fault> {
        SCRATCH.with_borrow_mut(|scratch| {
            if let Some(received) = self.receive(from, scratch)? {
                self.queue.append(received);
            }
            Ok(())
        })
    }

    fn receive<'b>(
        &mut self,
        from: &Socket,
        scratch: &'b mut [u8],
    ) -> Result<Option<&'b [u8]>, Fault> {
        let received = from.try_receive(scratch.len(), |fd| transfer::receive(fd, &mut *scratch));
        match received.map_err(Fault::source)? {
            None => Ok(None),
            Some(0) => {
                self.close_plain()?;
                Ok(None)
            }
            Some(bytes) => {
                let received = scratch.get(..bytes);
                let more = || bug!("no more is received than there is room for");
                Ok(Some(received.ok_or_else(|| Fault::source(more().into()))?))
            }
        }
    }
}

fn taken_twice() -> io::Error {
    bug!("a socket takes no more than there is").into()
}

thread_local! {
    /// The buffer into which all tunnels of a worker receive. Nothing stays here from one call to the next.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// Two full records, as the queue holds them at most.
const SCRATCH_BYTES: usize = 36 * 1_024;
