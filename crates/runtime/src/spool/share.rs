//! The bytes that bodies take of a spool, together and of each client.

use std::collections::HashMap;

use crate::client_address::ClientHost;

/// The bytes that bodies take, in all and of each client that has any.
#[derive(Debug, Default)]
pub(super) struct Shares {
    pub(super) all: Share,
    pub(super) of_clients: HashMap<ClientHost, Share>,
}

/// The bytes that some bodies take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) bytes: u64,
    pub(super) files: usize,
}

impl Shares {
    /// Takes some more for a client, if it then has no more than is left: no client has more than half, and others find some.
    pub(super) fn take(&mut self, client: ClientHost, more: Share, max: Share) -> bool {
        let all = self.all.with(more);
        let own = self.of_clients.get(&client).copied().unwrap_or_default().with(more);
        // Of what it takes nothing of, it may have more than it would get now.
        let is_taken = (more.bytes == 0 || all.bytes.saturating_add(own.bytes) <= max.bytes)
            && (more.files == 0 || all.files + own.files <= max.files);
        if is_taken && more != Share::default() {
            self.all = all;
            self.of_clients.insert(client, own);
        }
        is_taken
    }

    pub(super) fn give_back(&mut self, client: ClientHost, less: Share) {
        self.all = self.all.without(less);
        if let Some(own) = self.of_clients.get_mut(&client) {
            *own = own.without(less);
            if *own == Share::default() {
                self.of_clients.remove(&client);
            }
        }
    }
}

impl Share {
    fn with(self, more: Self) -> Self {
        let bytes = self.bytes.saturating_add(more.bytes);
        Self { bytes, files: self.files + more.files }
    }

    fn without(self, less: Self) -> Self {
        Self { bytes: self.bytes - less.bytes, files: self.files - less.files }
    }
}
