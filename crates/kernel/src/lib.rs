//! Everything kettle asks of Linux: kernel TLS, transfers without copies, sockets, the process itself.
//!
//! This is the only crate with `unsafe`. Every wrapper is total: no safe argument can make it touch memory it must
//! not, and descriptors are borrowed. Nothing here decides a policy; that is the work of `tls` and `server`.

mod named_socket;
mod option;

pub mod allocations;
pub mod bug;
pub mod cgroup;
pub mod file_stamp;
pub mod file_system;
pub mod keeper;
pub mod ktls;
pub mod netlink;
pub mod pipe;
pub mod probe;
pub mod process;
pub mod record;
pub mod sandbox;
pub mod socket;
pub mod tls_stat;
pub mod transfer;
pub mod warden;
