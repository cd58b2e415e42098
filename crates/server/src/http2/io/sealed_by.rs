//! The party that encrypts what a connection sends that speaks HTTP/2.

use kettle_runtime::tx_path::{Reason, TxPath};

use super::Http2Io;

/// The party that encrypts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SealedBy {
    User,
    /// The kernel is to, from the next write on.
    Moving,
    /// The kernel, or nobody: its socket is given plaintext.
    Kernel,
}

impl Http2Io {
    /// Has what is written from now on encrypted by the kernel, if it can.
    pub(crate) fn ask_for_kernel(&self) {
        if self.sealed_by.get() == SealedBy::User {
            self.sealed_by.set(SealedBy::Moving);
        }
    }

    /// Where what is written now is encrypted.
    pub(crate) fn path(&self) -> TxPath {
        match self.sealed_by.get() {
            _ if self.is_plain => TxPath::Plain,
            SealedBy::Kernel => TxPath::KernelWrite,
            SealedBy::User | SealedBy::Moving => TxPath::User,
        }
    }

    /// Why the kernel did not take the connection when that was last tried.
    pub(crate) fn refusal(&self) -> Option<Reason> {
        self.refusal.get()
    }
}
