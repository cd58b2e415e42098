//! Responses whose bodies come from a backend's server as they are sent: each piece goes out before the next is taken in.
//!
//! | the rest of the body | how it goes |
//! |---|---|
//! | has a known length, from a server without TLS | received where records keep it (`user`), or through a pipe (`kernel-splice`) |
//! | anything else | from memory (`user`, `kernel-write`) |

use std::pin::pin;
use std::task::Context;

use kettle_config::TxPathChoice;
use kettle_kernel::pipe::Pipe;
use kettle_kernel::transfer;
use kettle_runtime::pipes::Pipes;
use kettle_runtime::tx_path::TxPath;
use kettle_tls::buffers::Intake;
use kettle_tls::stream::Stream;
use kettle_upstream::UpstreamBody;

use super::send::{keep_pace, taken};
use super::{ClientSide, Delivery, DeliveryError, Demand, Piece, cut_short};

impl Delivery<'_> {
    /// Decides the path. A connection moves into the kernel for what can be spliced alone: anything else would save no copy
    /// there. Chooses whether the body is spliced.
    pub(super) async fn choose_upstream_path(
        &mut self,
        body: &UpstreamBody,
    ) -> Result<bool, DeliveryError> {
        let preference = self.preference;
        let length = body.length().filter(|_| body.is_spliceable()).unwrap_or_default();
        let is_plain = self.stream.is_plain();
        let crossover_bytes = if is_plain { 0 } else { preference.crossover_bytes };
        let is_large = length >= crossover_bytes.max(SPLICED_BYTES_MIN);
        let takes_kernel = is_plain
            || matches!(preference.choice, TxPathChoice::Auto | TxPathChoice::KernelSendfile);
        let is_wanted = is_large && takes_kernel;
        let offloads = &self.sending.worker.offloads;
        let obstacle = preference.obstacle;
        let obstacle = obstacle.or_else(|| offloads.splice_obstacle(self.stream.session()));
        let obstacle = obstacle.filter(|_| is_wanted);
        let bytes = if is_wanted && obstacle.is_none() { length } else { 1 };
        let demand = Demand { bytes, is_file: false, is_last: self.is_last };
        self.choose_tx_path(demand).await?;
        if let Some(obstacle) = obstacle.filter(|_| self.delivered.reason.is_none()) {
            self.delivered.reason = Some(obstacle);
        }
        Ok(is_wanted && obstacle.is_none() && self.stream.takes_plaintext())
    }

    /// The rest of a body, straight from its socket, as long as that is possible.
    pub(super) async fn move_direct(
        &mut self,
        body: &mut UpstreamBody,
    ) -> Result<(), DeliveryError> {
        let is_spliced = self.is_spliced;
        let mut intake = Intake::default();
        let worker = self.sending.worker;
        let pipes = &worker.pipes;
        while let Some((_, left_bytes)) = body.direct() {
            let allowed_bytes = taken(pin!(self.allowed(true)), body, worker).await?;
            let left_bytes = left_bytes.min(allowed_bytes);
            if body.is_stored() {
                break;
            }
            let sent_bytes = self.delivered.body_bytes;
            self.unless_gone(body.timeout(), |context| body.poll_readable(context)).await?;
            let pipe = if is_spliced { pipes.take() } else { None };
            match pipe {
                Some(pipe) => {
                    let held = Held { pipes, pipe: Some(pipe) };
                    self.splice(body, left_bytes, held).await?;
                }
                None if self.stream.takes_plaintext() => {
                    self.delivered.path = TxPath::KernelWrite;
                    let piece = self
                        .unless_gone(body.timeout(), |context| body.poll_chunk(context))
                        .await?;
                    keep_pace(self, body);
                    let piece = piece.unwrap_or_default();
                    let piece = Piece::Memory(&piece);
                    taken(pin!(self.send_portions(piece, false)), body, worker).await?;
                    continue;
                }
                None => self.seal_direct(body, left_bytes, &mut intake).await?,
            }
            self.took(self.delivered.body_bytes - sent_bytes);
            self.sending.worker.send_turns.end().await;
        }
        if self.is_last && !body.is_stored() {
            self.send_piece(Piece::Memory(&[]), true).await?;
        }
        Ok(())
    }

    /// Receives where records keep their plaintext, and seals it there.
    async fn seal_direct(
        &mut self,
        body: &mut UpstreamBody,
        left_bytes: u64,
        intake: &mut Intake,
    ) -> Result<(), DeliveryError> {
        let wanted_bytes = at_most(intake.bytes(), left_bytes);
        let mut room = self.stream.record_room(&[], wanted_bytes)?;
        let wanted_bytes = room.bytes();
        let Some((socket, _)) = body.direct() else { return Ok(()) };
        let received = room.lend(|slices| {
            socket.try_receive(wanted_bytes, |fd| transfer::receive_vectored(fd, slices))
        });
        let bytes = match received.map_err(cut_short)? {
            Some(bytes) => bytes,
            None => return Ok(room.commit(0)?),
        };
        room.commit(bytes)?;
        body.took(bytes).map_err(cut_short)?;
        keep_pace(self, body);
        intake.note(bytes == wanted_bytes);
        let worker = self.sending.worker;
        taken(pin!(self.flush(false)), body, worker).await?;
        self.delivered.body_bytes += bytes as u64;
        Ok(())
    }

    /// Moves what is there through a pipe.
    async fn splice(
        &mut self,
        body: &mut UpstreamBody,
        left_bytes: u64,
        mut held: Held<'_>,
    ) -> Result<(), DeliveryError> {
        let Some(pipe) = &mut held.pipe else { return Ok(()) };
        let wanted_bytes = at_most(pipe.capacity_bytes(), left_bytes);
        let Some((socket, _)) = body.direct() else { return Ok(()) };
        let filled = socket.try_receive_part(|fd| pipe.fill(fd, wanted_bytes));
        let Some(bytes) = filled.map_err(cut_short)? else { return Ok(()) };
        body.took(bytes).map_err(cut_short)?;
        keep_pace(self, body);
        (self.delivered.path, self.delivered.reason) = (TxPath::KernelSplice, None);
        while !pipe.is_empty() {
            let splice = |stream: &mut Stream, context: &mut Context<'_>| {
                stream.poll_kernel_splice(context, pipe, wanted_bytes)
            };
            let worker = self.sending.worker;
            let sent_bytes = taken(pin!(self.client_takes(splice)), body, worker).await??;
            self.note_taken(sent_bytes);
            self.delivered.body_bytes += sent_bytes as u64;
        }
        Ok(())
    }
}

/// A pipe of the worker's, which gets it back whatever happens.
struct Held<'p> {
    pipes: &'p Pipes,
    pipe: Option<Pipe>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            self.pipes.give(pipe);
        }
    }
}

fn at_most(bytes: usize, left_bytes: u64) -> usize {
    bytes.min(usize::try_from(left_bytes).unwrap_or(usize::MAX))
}

/// The bytes that a pipe and its two calls do not pay for, whatever the crossover.
const SPLICED_BYTES_MIN: u64 = 32 * 1_024;
