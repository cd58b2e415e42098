//! The output of a process, collected as it comes, with waits for what should come.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::environment::patience;

/// The output of a process so far.
#[derive(Clone)]
pub struct Transcript(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    grown: Condvar,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    has_ended: bool,
}

impl Transcript {
    /// Collects what `source` yields, on a thread of its own.
    pub fn of(mut source: impl Read + Send + 'static) -> Self {
        let shared = Arc::new(Shared { state: Mutex::default(), grown: Condvar::new() });
        let transcript = Self(Arc::clone(&shared));
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            loop {
                let count = source.read(&mut buffer).unwrap_or(0);
                let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.bytes.extend_from_slice(&buffer[..count]);
                state.has_ended = count == 0;
                shared.grown.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        transcript
    }

    /// Returns the output so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    /// The same as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    /// Waits until `find` finds what it looks for in all that was written.
    pub fn wait_until<T>(&self, what: &str, mut find: impl FnMut(&[u8]) -> Option<T>) -> T {
        let deadline = Instant::now() + patience();
        let mut state = self.lock();
        loop {
            if let Some(found) = find(&state.bytes) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let text = || String::from_utf8_lossy(&state.bytes).into_owned();
            assert!(!state.has_ended, "the output ended before {what}:\n{}", text());
            assert!(!left.is_zero(), "waited in vain for {what}:\n{}", text());
            state =
                self.0.grown.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until `text` has been written.
    pub fn wait_for(&self, text: &str) {
        self.wait_until(&format!("`{text}`"), |bytes| {
            contains(bytes, text.as_bytes()).then_some(())
        });
    }

    /// Waits until nothing more can come; `false` if that took too long.
    pub fn has_ended_in_time(&self) -> bool {
        let waited = self.0.grown.wait_timeout_while(self.lock(), patience(), |it| !it.has_ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.has_ended
    }

    /// A wait that was in vain panics under this lock, and what was written by then is shown all the same.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if `needle` occurs in `bytes`.
pub fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server is dropped while its test fails, and says then what it has written.
    #[test]
    fn what_was_written_can_be_had_after_a_wait_in_vain() {
        let transcript = Transcript::of(&b"ended"[..]);
        let waiting = transcript.clone();
        std::thread::spawn(move || waiting.wait_for("never")).join().unwrap_err();
        assert_eq!(transcript.text(), "ended");
    }
}
