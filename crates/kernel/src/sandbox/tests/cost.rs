//! Measures what the sandbox costs a file that is opened by its name: a measurement for
//! docs/security-scan.md.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

use super::*;

const DEPTHS: [usize; 5] = [0, 1, 4, 8, 16];
const RULES: [usize; 4] = [1, 10, 100, 10_000];
const ROUNDS: usize = 15;
const OPENED_EACH: u32 = 2_000;

#[test]
#[ignore = "a measurement"]
fn what_opening_a_file_costs_by_depth_and_number_of_rules() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    for depth in DEPTHS {
        let deep = root.join(["d"; 16][..depth].join("/"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "x").unwrap();
    }
    for other in 0..RULES[RULES.len() - 1] {
        fs::create_dir(folder.path().join(other.to_string())).unwrap();
    }
    println!(
        "µs more for openat2 below the root, least of {ROUNDS} rounds (without the sandbox: first column)"
    );
    println!(
        "| folders between root and file | none | {} |",
        RULES.map(|it| it.to_string()).join(" | ")
    );
    let confined = |rules: usize| {
        let others = (1..rules).map(|other| folder.path().join(other.to_string()));
        let read = others.chain([root.clone()]).collect();
        let files = Files { read, ..Files::default() };
        let root = &root;
        let files = &files;
        // A thread of its own: what it gives up, it gives up for good.
        thread::scope(|scope| {
            let confined = scope.spawn(move || {
                if rules > 0 {
                    files::restrict(files).unwrap();
                }
                DEPTHS.map(|depth| cost(root, depth))
            });
            confined.join().unwrap()
        })
    };
    // By turns, so that what disturbs disturbs all.
    let mut least = [[Duration::MAX; DEPTHS.len()]; RULES.len() + 1];
    for _ in 0..ROUNDS {
        for (least, rules) in least.iter_mut().zip([0].into_iter().chain(RULES)) {
            for (least, cost) in least.iter_mut().zip(confined(rules)) {
                *least = cost.min(*least);
            }
        }
    }
    for (column, depth) in DEPTHS.into_iter().enumerate() {
        let micros = |row: usize| least[row][column].as_secs_f64() * 1e6 / f64::from(OPENED_EACH);
        let more = (1..=RULES.len()).map(|row| format!("+{:.2}", micros(row) - micros(0)));
        println!("| {depth} | {:.2} | {} |", micros(0), more.collect::<Vec<_>>().join(" | "));
    }
}

/// Opens a file as the server does.
fn cost(root: &Path, depth: usize) -> Duration {
    let root = open(root, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let path = ["d"; 16][..depth].iter().chain(&["file"]).copied().collect::<Vec<_>>().join("/");
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let begin = Instant::now();
    for _ in 0..OPENED_EACH {
        black_box(openat2(&root, &path, flags, Mode::empty(), resolve).unwrap());
    }
    begin.elapsed()
}
