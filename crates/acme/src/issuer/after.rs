//! The work after a certificate came: the program of the site, once, when the certificate is in force or the server has had its time.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::spawn_local;
use tokio::time::Instant;

use super::Issuer;
use crate::programs::{Act, Request};
use crate::protocol::Level;

impl Issuer {
    /// The server shows a site's new certificate.
    pub(super) fn in_force(&mut self, name: &str) {
        let found = self.shared.sites.iter().position(|site| site.name() == name);
        if let Some(number) = found {
            self.run_after(number);
        }
    }

    /// Runs what the server did not speak of.
    pub(super) fn run_after_in_time(&mut self, number: usize) {
        let due = self.sites.get(number).and_then(|state| state.after);
        if due.is_some_and(|due| due <= Instant::now()) {
            self.run_after(number);
        }
    }

    /// Runs the program, unless that was done. One that fails is told of, and not run again until the next certificate.
    fn run_after(&mut self, number: usize) {
        let Some(state) = self.sites.get_mut(number) else { return };
        if state.after.take().is_none() {
            return;
        }
        let shared = Rc::clone(&self.shared);
        spawn_local(async move {
            let Some(site) = shared.sites.get(number) else { return };
            let request = Request { site: site.folder.clone(), act: Act::After };
            match shared.warden.run(&request, site.program_time_max).await {
                Ok(()) => {
                    let text = format!(
                        "what is to be done after a certificate of {} came is done",
                        site.name()
                    );
                    shared.server.log(Level::Info, text);
                }
                Err(error) => shared.server.log(Level::Error, error),
            }
            // A process that is killed before that runs it again.
            if let Err(error) = shared.state.set_after_due(&site.folder, false) {
                shared.server.log(Level::Error, format!("the state folder: {error}"));
            }
        });
    }
}

/// A server that cannot load the certificate does not keep others from it.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
