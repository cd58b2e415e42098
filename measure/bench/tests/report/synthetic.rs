//! Results that nobody measured: plausible figures of every scenario, the same at each call, to try reports on.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use kettle_bench::results::{
    Absent, Clock, FORMAT, Line, Point, Run, Sample, ScenarioLine, SubjectLine, Value,
};
use kettle_loadgen::measure::machine::Machine;

pub mod work;

/// A run of everything, on a machine that never was.
pub fn results() -> Vec<Line> {
    let mut made = Made { lines: vec![run(Clock::Time)], seed: 7 };
    made.nginx_1g();
    made.web_sizes();
    made.streaming();
    made.tps_ramp();
    made.idle_memory();
    made.mixed();
    made.ktls_setup();
    made.ciphers();
    made.unknown();
    made.lines
}

/// The line a run begins with.
pub fn run(clock: Clock) -> Line {
    let flags = "aes avx512f erms hypervisor sha_ni";
    Line::Run(Run {
        format: FORMAT,
        started: 1_795_305_600,
        kettle: "0.0.0-synthetic".to_owned(),
        commit: Some("0000000000000000000000000000000000000000".to_owned()),
        command: ["kettle", "bench", "run", "--synthetic"].map(str::to_owned).to_vec(),
        folder: None,
        machine: Machine {
            kernel: "6.18.0-synthetic".to_owned(),
            processor: "Synthetic(R) Processor @ 2.50GHz".to_owned(),
            processor_model: "6/85/7".to_owned(),
            cpus: 2,
            flags: flags.split(' ').map(str::to_owned).collect(),
            memory_bytes: 16 << 30,
            virtualization: Some("kvm".to_owned()),
            init_on_alloc: Some(true),
            kernel_tls: "yes".to_owned(),
            load_average: 0.4,
            ..Machine::default()
        },
        clock,
    })
}

struct Made {
    lines: Vec<Line>,
    seed: u64,
}

impl Made {
    /// About one: 1 ± share.
    fn noise(&mut self, share: f64) -> f64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        1.0 + ((self.seed >> 33) as f64 / f64::from(1_u32 << 31) * 2.0 - 1.0) * share
    }

    fn scenario(&mut self, name: &str, subjects: &[&str]) {
        self.lines.push(Line::Scenario(ScenarioLine {
            name: name.to_owned(),
            rules: [
                "Synthetic: nobody measured this.",
                "All servers have the same certificate (ECDSA P-256), TLS 1.3, AES-128-GCM, X25519, one worker on processor 0.",
                "Bodies are random bytes in files that the page cache holds.",
            ]
            .map(str::to_owned)
            .to_vec(),
        }));
        for subject in subjects {
            self.lines.push(Line::Subject(SubjectLine {
                scenario: name.to_owned(),
                name: (*subject).to_owned(),
                point: Point::new(),
                version: format!("{subject} 0.0 (synthetic)"),
                command: vec![
                    (*subject).to_owned(),
                    "--config".to_owned(),
                    "server.conf".to_owned(),
                ],
                config: "worker_processes 1;\nevents {\n    worker_connections 20000;\n}\n"
                    .to_owned(),
                template_sha256: None,
            }));
        }
    }

    fn sample(
        &mut self,
        key: (&str, &str, &str),
        point: &[(&str, f64)],
        round: u32,
        figures: &[(&str, f64)],
    ) -> &mut Sample {
        let (scenario, subject, part) = key;
        self.lines.push(Line::Sample(Sample {
            scenario: scenario.to_owned(),
            subject: subject.to_owned(),
            part: part.to_owned(),
            point: point
                .iter()
                .map(|(axis, value)| ((*axis).to_owned(), Value::Number(*value)))
                .collect(),
            round,
            figures: figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            histogram: None,
            failures: BTreeMap::new(),
            warnings: Vec::new(),
        }));
        match self.lines.last_mut() {
            Some(Line::Sample(sample)) => sample,
            _ => unreachable!("it was just added"),
        }
    }

    /// Latencies with about this 99th percentile and a longer tail.
    fn histogram(&mut self, p99: f64) -> String {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000, 3).unwrap();
        for _ in 0..2000 {
            let rare = self.noise(0.4999) - 0.5;
            histogram.record((p99 * 0.22 * rare.powf(-0.33)) as u64 + 1).unwrap();
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut bytes).unwrap();
        STANDARD.encode(bytes)
    }

    fn complete(&mut self, scenario: &str) {
        self.lines.push(Line::Complete { scenario: scenario.to_owned() });
    }

    fn absent(&mut self, scenario: &str, what: &str, why: &str) {
        let [scenario, what, why] = [scenario, what, why].map(str::to_owned);
        self.lines.push(Line::Absent(Absent { scenario, what, why }));
    }

    fn nginx_1g(&mut self) {
        let subjects = [
            ("kettle auto", 1.62),
            ("kettle user", 1.18),
            ("kettle kernel-write", 1.21),
            ("kettle kernel-sendfile", 1.63),
            ("kettle plain", 3.9),
            ("nginx user", 1.05),
            ("nginx kernel-sendfile", 1.55),
        ];
        self.scenario("nginx-1g", &subjects.map(|(name, _)| name));
        for round in 0..30 {
            for (subject, speed) in subjects {
                let speed = speed * self.noise(0.06);
                let cpu = 0.92 / speed * self.noise(0.03);
                let figures = [
                    ("gigabytes_per_second", speed),
                    ("cpu_seconds_per_gib", cpu),
                    ("client_busy", 0.7),
                ];
                self.sample(("nginx-1g", subject, ""), &[], round, &figures);
            }
        }
        self.absent(
            "nginx-1g",
            "nginx kernel-write",
            "nginx has no such way: it sends with SSL_sendfile or from memory",
        );
        self.complete("nginx-1g");
    }

    fn web_sizes(&mut self) {
        let subjects = [
            "kettle auto",
            "kettle user",
            "kettle kernel-write",
            "kettle kernel-sendfile",
            "nginx user",
            "nginx kernel-sendfile",
            "haproxy user",
        ];
        self.scenario("web-sizes", &subjects);
        for round in 0..5 {
            for size in SIZES {
                for subject in subjects {
                    let cpu = cost(subject, size) * self.noise(0.03);
                    let rate = 1e9 / cpu * 0.93;
                    let figures = [
                        ("cpu_ns_per_request", cpu),
                        ("cpu_ns_per_byte", cpu / size),
                        ("requests_per_second", rate),
                        ("gigabits_per_second", rate * size * 8.0 / 1e9),
                        ("client_busy", if size > 1e6 { 0.97 } else { 0.6 }),
                        ("p99_us", 4000.0),
                    ];
                    let noisy = self.noise(1.0) > 1.9;
                    let sample =
                        self.sample(("web-sizes", subject, ""), &[("size", size)], round, &figures);
                    if noisy {
                        sample
                            .warnings
                            .push("another process used 12 % of the server's core".to_owned());
                    }
                }
            }
        }
        for subject in subjects {
            for size in SIZES {
                let calls =
                    if subject.contains("sendfile") { 3.0 } else { 2.0 + (size / 16384.0).ceil() };
                self.sample(
                    ("web-sizes", subject, "calls"),
                    &[("size", size)],
                    0,
                    &[("calls_per_request", calls)],
                );
            }
        }
        self.complete("web-sizes");
    }

    fn streaming(&mut self) {
        let subjects = [
            ("kettle auto", 14.0, 3100.0),
            ("kettle user", 22.0, 5200.0),
            ("nginx user", 25.0, 15_100.0),
            ("nginx kernel-sendfile", 17.0, 14_800.0),
            ("haproxy terminator", 33.0, 22_300.0),
        ];
        self.scenario("streaming", &subjects.map(|(name, ..)| name));
        for round in 0..5 {
            for throughput in [1.0, 2.0, 4.0] {
                for (subject, cost, memory) in subjects {
                    let cpu = cost * throughput * self.noise(0.04);
                    let user = if subject.contains("user") || subject.contains("term") {
                        0.6
                    } else {
                        0.12
                    };
                    let figures = [
                        ("cpu_percent", cpu),
                        ("cpu_user_percent", cpu * user),
                        ("cpu_system_percent", cpu * (1.0 - user)),
                        ("softirq_percent", cpu * 0.2),
                        ("memory_bytes_per_connection", memory * self.noise(0.02)),
                        ("kernel_bytes_per_connection", 9800.0),
                        ("first_byte_p99_us", 900.0 * (1.0 + cpu / 40.0) * self.noise(0.1)),
                        ("stalls_per_1000", (cpu - 70.0).max(0.0) / 9.0),
                        ("gigabits_per_second", throughput),
                    ];
                    let point = [("throughput", throughput), ("connections", 10_000.0)];
                    self.sample(("streaming", subject, ""), &point, round, &figures);
                }
            }
        }
        self.absent(
            "streaming",
            "memory bandwidth",
            "neither uncore counters nor resctrl are on this machine",
        );
        self.complete("streaming");
    }

    fn tps_ramp(&mut self) {
        let subjects = [
            ("kettle user", 4100.0),
            ("nginx user", 3300.0),
            ("haproxy terminator", 2900.0),
            ("hitch", 2500.0),
            ("stunnel", 1400.0),
        ];
        self.scenario("tps-ramp", &subjects.map(|(name, _)| name));
        for (subject, base) in subjects {
            for k in [1.0, 4.0, 8.0, 80.0] {
                let most = base * (1.0 + 1.4 * (1.0 - 1.0 / k));
                let mut rate = 50.0;
                while rate < most * 1.35 {
                    let load: f64 = rate / most;
                    let good =
                        rate.min(most * (1.0 - 0.12 * (load - 1.0).max(0.0))) * self.noise(0.01);
                    let mean = if load < 1.0 {
                        900.0 + 700.0 * load / (1.0 - load.min(0.995))
                    } else {
                        3e5 * load * load
                    };
                    let mean = mean * self.noise(0.08);
                    let figures = [
                        ("attempted_per_second", rate),
                        ("succeeded_per_second", good.min(rate)),
                        ("failed_per_second", (rate - good).max(0.0)),
                        ("mean_us", mean),
                        ("p99_us", mean * (3.0 + load)),
                    ];
                    self.sample(
                        ("tps-ramp", subject, "step"),
                        &[("rate", rate), ("k", k)],
                        0,
                        &figures,
                    );
                    rate *= 1.09;
                }
                let summary = [
                    ("tps_max", most),
                    ("tps_mean_100ms", most * 0.94),
                    ("tps_mean_500ms", most * 0.985),
                    ("tps_p99_100ms", most * 0.88),
                    ("tps_loss_0_1_percent", most * 0.97),
                    ("tps_loss_0_01_percent", most * 0.95),
                    ("cpu_us_per_full_transaction", 9.4e5 / base),
                    ("cpu_us_per_resumed_transaction", 3.6e5 / base),
                ];
                let summary = if k == 1.0 { &summary[..7] } else { &summary[..] };
                self.sample(("tps-ramp", subject, "summary"), &[("k", k)], 0, summary);
            }
        }
        self.absent(
            "tps-ramp",
            "workers 2, 4 and 6",
            "the machine has 2 processors, and one is the client's",
        );
    }

    fn idle_memory(&mut self) {
        let subjects = [
            ("kettle auto", 900.0),
            ("kettle user", 2900.0),
            ("nginx user", 14_700.0),
            ("haproxy terminator", 19_000.0),
            ("hitch", 31_000.0),
            ("stunnel", 61_000.0),
        ];
        self.scenario("idle-memory", &subjects.map(|(name, _)| name));
        for round in 0..3 {
            for connections in [1000.0, 10_000.0] {
                for (subject, bytes) in subjects {
                    let figures = [
                        ("memory_bytes_per_connection", bytes * self.noise(0.03)),
                        ("kernel_bytes_per_connection", 4900.0 * self.noise(0.03)),
                    ];
                    self.sample(
                        ("idle-memory", subject, ""),
                        &[("connections", connections)],
                        round,
                        &figures,
                    );
                }
            }
        }
        self.complete("idle-memory");
    }

    fn mixed(&mut self) {
        let subjects = [("kettle auto", 1.0), ("nginx user", 1.7), ("haproxy user", 1.5)];
        self.scenario("mixed", &subjects.map(|(name, _)| name));
        for round in 0..5 {
            for flood in [0.0, 100.0, 200.0, 400.0, 800.0, 1600.0] {
                for (subject, weight) in subjects {
                    let p99 = 1800.0 * weight * (1.0 + flood / 350.0) * self.noise(0.12);
                    let figures = [
                        ("p99_us", p99),
                        ("p50_us", p99 / 4.0),
                        ("gigabits_per_second", (6.0 - flood / 500.0) / weight),
                    ];
                    let histogram = self.histogram(p99);
                    let point = [("flood", flood)];
                    self.sample(("mixed", subject, ""), &point, round, &figures).histogram =
                        Some(histogram);
                }
            }
        }
        self.complete("mixed");
    }

    fn ktls_setup(&mut self) {
        let subjects = [
            "kettle auto",
            "kettle user",
            "kettle kernel-write",
            "kettle kernel-sendfile",
            "nginx user",
            "nginx kernel-sendfile",
        ];
        self.scenario("ktls-setup", &subjects);
        for round in 0..5 {
            for size in SIZES {
                for subject in subjects {
                    let setup = if subject.contains("kernel") { 21.0 } else { 0.0 };
                    let cpu = (310.0 + setup + cost(subject, size) / 1000.0) * self.noise(0.015);
                    let figures =
                        [("cpu_us_per_transaction", cpu), ("succeeded_per_second", 9e5 / cpu)];
                    self.sample(("ktls-setup", subject, ""), &[("size", size)], round, &figures);
                }
            }
        }
        self.complete("ktls-setup");
    }

    fn ciphers(&mut self) {
        let subjects = [
            "kettle auto",
            "kettle user",
            "kettle kernel-write",
            "kettle kernel-sendfile",
            "nginx user",
            "nginx kernel-sendfile",
        ];
        self.scenario("ciphers", &subjects);
        for round in 0..5 {
            for (suite, weight) in
                [("aes128-gcm", 1.0), ("aes256-gcm", 1.15), ("chacha20-poly1305", 2.0)]
            {
                for subject in subjects {
                    let per_byte = cost(subject, 1e7) / 1e7 * weight * self.noise(0.03);
                    let figures =
                        [("cpu_ns_per_byte", per_byte), ("gigabits_per_second", 7.0 / per_byte)];
                    let sample = self.sample(("ciphers", subject, ""), &[], round, &figures);
                    sample.point.insert("suite".to_owned(), Value::Word(suite.to_owned()));
                }
            }
        }
        self.complete("ciphers");
    }

    fn unknown(&mut self) {
        self.scenario("later-scenario", &["kettle auto"]);
        for round in 0..3 {
            let speed = 3.0 * self.noise(0.1);
            self.sample(
                ("later-scenario", "kettle auto", ""),
                &[("connections", 10.0)],
                round,
                &[("gigabits_per_second", speed), ("new_figure_us", 12.0)],
            );
        }
        self.complete("later-scenario");
    }
}

/// Nanoseconds of the server's processor for a response.
fn cost(subject: &str, size: f64) -> f64 {
    let (program, way) = subject.split_once(' ').unwrap_or((subject, ""));
    let base = match program {
        "kettle" => 9_000.0,
        "nginx" => 12_500.0,
        _ => 15_000.0,
    };
    let of = |way: &str| match way {
        "kernel-write" => base + 2_500.0 + size * 0.66,
        "kernel-sendfile" => base + 5_200.0 + size * 0.52,
        "plain" => base + size * 0.2,
        _ => base + size * 0.78,
    };
    match way {
        "auto" if size < 64.0 * 1024.0 => of("user") * 1.01,
        "auto" => of("kernel-sendfile") * 1.01,
        way => of(way),
    }
}

const SIZES: [f64; 10] = [
    1024.0,
    4096.0,
    16_384.0,
    32_768.0,
    65_536.0,
    131_072.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    10_485_760.0,
];
