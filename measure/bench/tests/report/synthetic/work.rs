//! Work under an emulator that nobody ran.

use kettle_bench::results::{Clock, Line, Value};

use super::{Made, SIZES, run};

/// A run of `work`, with both settings of fast string copies.
pub fn results() -> Vec<Line> {
    let mut made = Made { lines: vec![run(Clock::Work)], seed: 9 };
    made.work();
    made.lines
}

impl Made {
    fn work(&mut self) {
        let subjects =
            ["kettle user", "kettle kernel-write", "kettle kernel-sendfile", "kettle plain"];
        self.scenario("work", &subjects);
        for erms in ["on", "off"] {
            for size in SIZES {
                for (index, subject) in subjects.into_iter().enumerate() {
                    let copies = [2.01, 1.03, 0.02, 0.004][index];
                    let zeroed = [0.7, 0.67, 1.0, 0.0][index];
                    let aes = if index == 3 { 0.0 } else { 0.626 };
                    let weight = if erms == "on" { 1.0 } else { 0.125 };
                    let count = 42_000.0
                        + size * (1.2 + (copies + zeroed) * weight)
                        + if index == 0 { size * 0.9 } else { 6000.0 };
                    let user = if index == 0 { size * 2.4 + 9000.0 } else { 9500.0 };
                    let figures = [
                        ("instructions_per_request", count.max(user)),
                        ("user_instructions_per_request", user),
                        ("kernel_instructions_per_request", (count - user).max(30_000.0)),
                        ("copied_bytes_per_byte", copies + 300.0 / size),
                        ("zeroed_bytes_per_byte", zeroed),
                        ("aes_blocks_per_byte", aes),
                        ("calls_per_request", 3.0),
                        ("pages_allocated_per_request", size / 4096.0),
                    ];
                    let sample = self.sample(("work", subject, ""), &[("size", size)], 0, &figures);
                    sample.point.insert("erms".to_owned(), Value::Word(erms.to_owned()));
                }
            }
        }
        self.complete("work");
    }
}
