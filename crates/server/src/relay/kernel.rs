//! Bytes that stay in the kernel: from the socket into a pipe, and out of it into the other socket, which encrypts them
//! if it has TLS.

use std::task::{Context, Poll, ready};

use kettle_kernel::socket;
use kettle_runtime::offloads::Offloads;
use kettle_runtime::pipes::Pipes;
use kettle_runtime::tx_path::{Reason, TxPath};
use kettle_upstream::backend::Socket;

use super::direction::{Direction, Fault, RelayPath};
use super::side::Side;

impl Direction {
    /// Moves what goes to the other side into the kernel, or stays where it is for a reason. Not before there is
    /// something to send: a tunnel that only waits costs the kernel nothing.
    pub(super) fn poll_move(
        &mut self,
        from: &Socket,
        to: &mut Side,
        offloads: &Offloads,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        ready!(from.poll_readable(context)).map_err(Fault::source)?;
        if let Side::Tls(to) = to
            && !to.is_offloaded()
        {
            let is_unix = socket::unix::is_unix(to.socket());
            let obstacle = is_unix.then_some(Reason::UnixSocket);
            if let Some(obstacle) = obstacle.or_else(|| offloads.splice_obstacle(to.session())) {
                self.stay(obstacle, offloads);
                return Poll::Ready(Ok(()));
            }
            let offloaded = ready!(to.poll_offload(context, offloads.can_rekey()));
            let refusal = offloads.conclude(to.session(), offloaded).map_err(Fault::sink)?;
            if let Some(refusal) = refusal {
                self.stay(refusal, offloads);
                return Poll::Ready(Ok(()));
            }
            // Accepted sockets have it from their listener. One that refuses is slower.
            let _ = socket::raise_not_sent_low_water(to.socket());
        }
        (self.path, self.flow.reason) = (RelayPath::Kernel, None);
        Poll::Ready(Ok(()))
    }

    fn stay(&mut self, reason: Reason, offloads: &Offloads) {
        offloads.not_preferred(reason);
        (self.path, self.flow.reason) = (RelayPath::User, Some(reason));
    }

    /// Receives into a pipe. Without one, into memory: then the kernel encrypts what is written from there.
    pub(super) fn poll_splice(
        &mut self,
        from: &Socket,
        to: &Side,
        pipes: &Pipes,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        ready!(from.poll_readable(context)).map_err(Fault::source)?;
        let Some(mut pipe) = pipes.take() else {
            if self.flow.path == TxPath::User && matches!(to, Side::Tls(_)) {
                self.flow.path = TxPath::KernelWrite;
            }
            return Poll::Ready(self.receive_into_queue(from));
        };
        let capacity_bytes = pipe.capacity_bytes();
        // Small segments fill a pipe before the socket is empty.
        match from.try_receive_part(|fd| pipe.fill(fd, capacity_bytes)) {
            Ok(Some(1..)) => {
                self.pipe = Some(pipe);
                self.flow.path = TxPath::KernelSplice;
                return Poll::Ready(Ok(()));
            }
            received => {
                pipes.give(pipe);
                if received.map_err(Fault::source)? == Some(0) {
                    self.close_plain()?;
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}
