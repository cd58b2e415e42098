//! Listeners on Unix sockets, and what is wrong where one cannot be made.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use kettle_config::ListenAddress;
use kettle_kernel::socket::unix::{self, Rights};

use super::{BoundAddress, Held};

/// Makes the socket, which all workers accept from.
pub(super) fn bind(
    path: &Path,
    rights: Rights,
    backlog: u32,
    workers: usize,
) -> io::Result<BoundAddress> {
    let (socket, place) = unix::listen(path, &rights, backlog)?;
    let socket = Arc::new(socket.into());
    let address = ListenAddress::Unix(path.to_owned());
    Ok(BoundAddress {
        configured: address.clone(),
        actual: address,
        sockets: vec![socket; workers],
        held: Held::Unix {
            place: Arc::new(place),
            rights,
            workers: Arc::new(AtomicUsize::new(workers)),
        },
    })
}

/// Says what went wrong and what to do next.
pub(super) fn explain(path: &Path, error: &io::Error) -> (String, String) {
    let folder = path.parent().unwrap_or(Path::new("/")).display();
    let (why, help) = match error.kind() {
        io::ErrorKind::AddrInUse => (
            "another server answers on it".to_owned(),
            "stop that program, or write another path".to_owned(),
        ),
        io::ErrorKind::AlreadyExists => (
            "something that is not a socket is in its place".to_owned(),
            "move that file away, or write another path".to_owned(),
        ),
        io::ErrorKind::NotFound => (
            format!("{folder} is not there"),
            "make that folder; with systemd `RuntimeDirectory=` makes one in /run".to_owned(),
        ),
        io::ErrorKind::PermissionDenied => (
            error.to_string(),
            format!(
                "let the user that kettle runs as write to {folder}; only root gives the file to another `owner` or `group`"
            ),
        ),
        _ => (error.to_string(), "write another path".to_owned()),
    };
    (format!("cannot listen on unix:{}: {why}", path.display()), help)
}
