//! Stages that run beside each other, each line of their output behind its stage's name.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread;

use super::totals::Totals;

/// Something that runs tests beside others.
pub struct Stage<'p> {
    /// Its name in the summary.
    pub name: String,
    /// Runs the tests that the words choose, and shows their output.
    pub work: Box<Work<'p>>,
}

type Work<'p> = dyn Fn(&[String], &mut dyn Write) -> Result<Totals, String> + Sync + 'p;

impl<'p> Stage<'p> {
    pub fn new(
        name: impl Into<String>,
        work: impl Fn(&[String], &mut dyn Write) -> Result<Totals, String> + Sync + 'p,
    ) -> Self {
        Self { name: name.into(), work: Box::new(work) }
    }
}

/// Runs the stages, begun in their order, as many at once as there are processors and at least two. The results have the order
/// of the stages.
pub fn run<R: Send>(
    stages: &[Stage],
    run_one: impl Fn(&Stage, &mut dyn Write) -> R + Sync,
) -> Vec<R> {
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let waiting = Mutex::new(stages.iter().enumerate());
    let next = || waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
    let lane = || {
        let mut results = Vec::new();
        while let Some((position, stage)) = next() {
            let shown = &mut Labelled::new(&stage.name, io::stdout());
            results.push((position, run_one(stage, shown)));
        }
        results
    };
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let lanes = processors.max(LANES_MIN).min(stages.len());
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        let joined = lanes.into_iter().map(thread::ScopedJoinHandle::join);
        joined
            .flat_map(|lane| lane.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Writes whole lines, each behind a label, so that those of several stages do not mix.
struct Labelled<'n, W> {
    label: &'n str,
    out: W,
    pending: Vec<u8>,
}

impl<'n, W: Write> Labelled<'n, W> {
    fn new(label: &'n str, out: W) -> Self {
        Self { label, out, pending: Vec::new() }
    }
}

impl<W: Write> Write for Labelled<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            self.pending.push(byte);
            if byte == b'\n' {
                let line = [self.label.as_bytes(), b" | ", &self.pending].concat();
                self.pending.clear();
                self.out.write_all(&line)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// One stage leaves a processor idle now and then.
const LANES_MIN: usize = 2;

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn nothing(_: &[String], _: &mut dyn Write) -> Result<Totals, String> {
        Ok(Totals::default())
    }

    #[test]
    fn two_run_at_once_and_results_keep_their_order() {
        let stages = ["slow", "quick", "last"].map(|name| Stage::new(name, nothing));
        // Nobody gets past it alone.
        let both = Barrier::new(2);
        let results = run(&stages, |stage, _| {
            if stage.name != "last" {
                both.wait();
            }
            stage.name.len()
        });
        assert_eq!(results, [4, 5, 4]);
        assert!(run(&[], |_, _| ()).is_empty());
    }

    #[test]
    fn each_line_is_written_whole_behind_its_label() {
        let mut written = Vec::new();
        let mut labelled = Labelled::new("guest", &mut written);
        labelled.write_all(b"test a ... ").unwrap();
        labelled.write_all(b"ok\ntest").unwrap();
        assert_eq!(written, b"guest | test a ... ok\n");
    }
}
