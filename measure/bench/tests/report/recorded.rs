//! Results to try reports on: those of docs/results, as if their kernel had carried TLS too.

use std::fs;
use std::path::Path;

use kettle_bench::results::{Clock, Line, Run, Sample, Value};

/// The lines of time: those recorded; kernel paths, made of what the process took; a ramp that is not finished; and a scenario
/// that this version does not know.
pub fn results() -> Vec<Line> {
    let comparisons = recorded("comparisons");
    let later = comparisons.replace("\"ciphers\"", "\"later-scenario\"");
    let later = later.lines().filter(|line| line.contains("\"later-scenario\""));
    let large_file = recorded("large-file");
    let lines = comparisons.lines().chain(large_file.lines().skip(1)).chain(later);
    let mut lines: Vec<Line> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.retain(|line| !matches!(line, Line::Complete { scenario } if scenario == "tps-ramp"));
    lines[0] = run(Clock::Time);
    let kernel = lines.iter().filter_map(|line| match line {
        Line::Sample(sample) if sample.subject == "kettle user" => Some(sample),
        _ => None,
    });
    let kernel: Vec<Line> = kernel.flat_map(by_kernel).collect();
    lines.extend(kernel);
    lines
}

/// The lines of work.
pub fn work() -> Vec<Line> {
    recorded("work").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The line a run begins with, on a kernel that carries TLS.
pub fn run(clock: Clock) -> Line {
    let run: Line = serde_json::from_str(recorded("comparisons").lines().next().unwrap()).unwrap();
    let Line::Run(mut run) = run else { panic!("{run:?}") };
    run.machine.kernel_tls = "yes".to_owned();
    Line::Run(Run { clock, ..run })
}

/// The same sample on the kernel's paths: each is cheaper from another size on.
fn by_kernel(sample: &Sample) -> impl Iterator<Item = Line> {
    let size = match sample.point.get("size") {
        Some(Value::Number(size)) => size.log2(),
        _ => 20.0,
    };
    let write = 1.7 - 0.045 * size;
    let sendfile = 1.9 - 0.06 * size;
    let paths = [("kernel-write", write), ("kernel-sendfile", sendfile)];
    let auto = ("auto", 1.01 * sendfile.min(1.0));
    paths.into_iter().chain([auto]).map(move |(path, times)| {
        let mut made = Sample { subject: format!("kettle {path}"), ..sample.clone() };
        for (_, value) in made.figures.iter_mut().filter(|(name, _)| name.starts_with("cpu_")) {
            *value *= times;
        }
        Line::Sample(made)
    })
}

fn recorded(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    fs::read_to_string(folder.join(name).with_extension("jsonl")).unwrap()
}
