//! Pipes that a worker's tunnels take while bytes are under way in the kernel, and give back.

use std::cell::{Cell, RefCell};

use kettle_kernel::bug;
use kettle_kernel::pipe::Pipe;

/// Some idle pipes, and a bound on those in use: what a slow peer leaves in one is memory of the kernel's.
#[derive(Debug, Default)]
pub struct Pipes {
    idle: RefCell<Vec<Pipe>>,
    in_use: Cell<usize>,
}

impl Pipes {
    /// An empty pipe. `None` if too many are in use, or there are no descriptors left.
    pub fn take(&self) -> Option<Pipe> {
        if self.in_use.get() >= IN_USE_MAX {
            return None;
        }
        let idle = self.idle.borrow_mut().pop();
        let pipe = idle.or_else(|| Pipe::new(PIPE_BYTES).ok())?;
        self.in_use.set(self.in_use.get() + 1);
        Some(pipe)
    }

    /// Takes a pipe back. One with something in it cannot be used again, and one that the user's limits kept small is
    /// better made anew.
    pub fn give(&self, pipe: Pipe) {
        match self.in_use.get().checked_sub(1) {
            Some(left) => self.in_use.set(left),
            None => _ = bug!("a pipe that comes back was counted"),
        }
        let mut idle = self.idle.borrow_mut();
        if pipe.is_empty() && pipe.capacity_bytes() >= PIPE_BYTES && idle.len() < IDLE_MAX {
            idle.push(pipe);
        }
    }

    /// Returns the number in use.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.in_use.get()
    }
}

/// Sixteen full records.
const PIPE_BYTES: usize = 256 * 1_024;

/// Slow peers may pin this many pipes of a worker: 64 MiB.
const IN_USE_MAX: usize = 256;

/// Pipes at rest cost their descriptors only.
const IDLE_MAX: usize = 16;
