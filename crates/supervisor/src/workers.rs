//! The worker threads: how they start, how they are told to stop, how their end is noticed.

use std::io;
use std::thread::JoinHandle;

use tokio::sync::{mpsc, watch};

use kettle_server::setup::{Shutdown, WorkerSetup};
use kettle_server::worker;

/// The running worker threads.
#[derive(Debug)]
pub struct Workers {
    threads: Vec<Option<JoinHandle<io::Result<()>>>>,
    shutdown: watch::Sender<Shutdown>,
    ends: mpsc::Receiver<usize>,
}

impl Workers {
    /// Starts one thread for each setup. `shutdown` is the sending end of what the setups hold.
    ///
    /// # Errors
    ///
    /// Fails if a runtime cannot be built or a thread not be started.
    pub fn start(setups: Vec<WorkerSetup>, shutdown: watch::Sender<Shutdown>) -> io::Result<Self> {
        let (ended, ends) = mpsc::channel(setups.len().max(1));
        let mut threads = Vec::with_capacity(setups.len());
        // All of them have their descriptors before the first accepts.
        let runtimes = setups.iter().map(|_| worker::runtime()).collect::<io::Result<Vec<_>>>()?;
        for (setup, runtime) in setups.into_iter().zip(runtimes) {
            let notice = EndNotice { index: setup.index, ended: ended.clone() };
            let thread = std::thread::Builder::new()
                .name(format!("kettle-{}", setup.index))
                .spawn(move || {
                    let _notice = notice;
                    worker::run(runtime, setup)
                })?;
            threads.push(Some(thread));
        }
        Ok(Self { threads, shutdown, ends })
    }

    /// Lets every worker accept.
    pub fn serve(&self) {
        self.shutdown.send_replace(Shutdown::Running);
    }

    /// Tells every worker to finish.
    pub fn shut_down(&self, shutdown: Shutdown) {
        self.shutdown.send_replace(shutdown);
    }

    /// Waits until a worker ends, and returns its index; `None` once all have ended.
    pub async fn next_end(&mut self) -> Option<usize> {
        self.ends.recv().await
    }

    /// Collects what a worker that has ended left behind: whether it ended as it should.
    pub fn join(&mut self, index: usize) -> bool {
        let Some(thread) = self.threads.get_mut(index).and_then(Option::take) else { return true };
        match thread.join() {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::error!(%error, "worker {index} failed");
                false
            }
            Err(_) => {
                tracing::error!("worker {index} panicked");
                false
            }
        }
    }
}

/// Reports the end of a thread, whether it returns or panics.
struct EndNotice {
    index: usize,
    ended: mpsc::Sender<usize>,
}

impl Drop for EndNotice {
    fn drop(&mut self) {
        // The channel has room for every worker.
        let _ = self.ended.try_send(self.index);
    }
}
