//! Stages that run beside each other, each line of their output behind its stage's name.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::thread;

use super::totals::Totals;
use crate::process::Lines;

/// Something that runs tests beside others.
pub struct Stage<'p> {
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

/// Runs the stages of each lane one after the other, beside those of the other lanes. The results have the order of the stages.
pub fn run<R: Send>(
    lanes: &[Vec<Stage>],
    run_one: impl Fn(&Stage, &mut dyn Write) -> R + Sync,
) -> Vec<R> {
    let run_one = &run_one;
    let run_lane = |lane: &[Stage]| -> Vec<R> {
        let run = |stage: &Stage| run_one(stage, &mut Labelled::new(&stage.name, io::stdout()));
        lane.iter().map(run).collect()
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = lanes.iter().map(|lane| scope.spawn(move || run_lane(lane))).collect();
        let joined = lanes.into_iter().map(thread::ScopedJoinHandle::join);
        joined.flat_map(|lane| lane.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Writes whole lines, each behind a label, so that those of several stages do not mix.
struct Labelled<'n, W> {
    label: &'n str,
    out: W,
    lines: Lines,
}

impl<'n, W: Write> Labelled<'n, W> {
    fn new(label: &'n str, out: W) -> Self {
        Self { label, out, lines: Lines::default() }
    }
}

impl<W: Write> Write for Labelled<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Self { label, out, lines } = self;
        let mut written = Ok(());
        lines.push(bytes, &mut |line| {
            let line = format!("{label} | {line}\n");
            if written.is_ok() {
                written = out.write_all(line.as_bytes());
            }
        });
        written.map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn nothing(_: &[String], _: &mut dyn Write) -> Result<Totals, String> {
        Ok(Totals::default())
    }

    #[test]
    fn lanes_run_at_once_and_results_keep_their_order() {
        let lanes = [vec!["slow", "next"], vec!["quick"], vec![]]
            .map(|names| names.into_iter().map(|name| Stage::new(name, nothing)).collect());
        // Nobody gets past it alone.
        let both = Barrier::new(2);
        let results = run(&lanes, |stage, _| {
            if stage.name != "next" {
                both.wait();
            }
            stage.name.clone()
        });
        assert_eq!(results, ["slow", "next", "quick"]);
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
