//! The results as lines of JSON, in the format of `measure/bench/src/results.rs`, which `kettle bench report` and `diff` read.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::super::{PROCESSOR_FLAGS, commit};
use super::Bed;
use super::vector::{GuestLines, Vector};
use crate::files::{self, create_folder};
use crate::process;

pub struct Record<'r> {
    pub bed: &'r Bed<'r>,
    /// The lines of one of them about itself.
    pub lines: &'r GuestLines,
    pub vectors: &'r [Vector],
}

impl Record<'_> {
    pub fn write(&self, path: &Path) -> Result<(), String> {
        if let Some(folder) = path.parent() {
            create_folder(folder)?;
        }
        let lines: Vec<String> = self.values()?.iter().map(Value::to_string).collect();
        files::write(path, format!("{}\n", lines.join("\n")))
    }

    fn values(&self) -> Result<Vec<Value>, String> {
        let kettle = process::read(std::process::Command::new(&self.bed.kettle).arg("--version"))?;
        let version = kettle.split_whitespace().nth(1).unwrap_or_default().to_owned();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut values = vec![
            json!({
                "line": "run", "format": FORMAT, "started": started, "kettle": version,
                "commit": commit()?, "command": ["cargo", "xtask", "measure", "work"],
                "machine": self.machine(), "clock": "work",
            }),
            json!({ "line": "scenario", "name": SCENARIO, "rules": self.rules()? }),
        ];
        for server in &self.bed.servers {
            let (config, ending) = server.config();
            let (program, version) = if server.is_kettle() {
                (vec!["kettle", "run", "--config"], version.clone())
            } else {
                let openssl = self.lines.machine("openssl");
                (vec!["nginx", "-c"], format!("{}, {openssl}", self.lines.machine("nginx")))
            };
            let mut command: Vec<_> = program.into_iter().map(str::to_owned).collect();
            command.push(format!("{}.{ending}", server.name));
            values.push(json!({
                "line": "subject", "scenario": SCENARIO, "name": server.subject(),
                "version": version, "command": command, "config": config,
            }));
        }
        values.extend(self.vectors.iter().map(|vector| self.sample(vector)));
        values.push(json!({ "line": "absent", "scenario": SCENARIO, "what": "time",
            "why": "an emulator counts work; seconds, rates and latency need real hardware with kernel TLS" }));
        values.push(json!({ "line": "complete", "scenario": SCENARIO }));
        Ok(values)
    }

    fn sample(&self, vector: &Vector) -> Value {
        let server = self.bed.servers.iter().find(|server| server.name == vector.server);
        json!({
            "line": "sample", "scenario": SCENARIO,
            "subject": server.map(|server| server.subject()).unwrap_or_default(),
            "point": { "size": vector.bytes, "erms": if vector.erms { "on" } else { "off" } },
            "round": vector.round,
            "figures": vector.figures,
        })
    }

    /// The parameters of the run, a sentence each. The gate compares them: where one differs, figures may differ for no fault of kettle's.
    pub fn rules(&self) -> Result<Vec<String>, String> {
        let rustc = process::read(std::process::Command::new("rustc").arg("--version"))?;
        let rustc = rustc.split(" (").next().unwrap_or_default().trim().to_owned();
        Ok(vec![
            format!("Linux {}.", self.lines.machine("kernel")),
            format!("QEMU {}, one instruction is one nanosecond, one CPU.", self.bed.qemu),
            format!("The servers' C library: {}", self.lines.machine("libc")),
            format!("kettle is built by {rustc} in the profile {}.", self.bed.profile),
            "One worker, TLS 1.3, TLS_AES_128_GCM_SHA256, X25519, ECDSA P-256, no access log, files in the page cache.".into(),
            "curl fetches one file again and again over one connection; a figure is the difference of two numbers of requests, divided by it.".into(),
            "Tunnels go to a plain server on the same CPU, whose work is not counted; `to-backend` sends the body instead of fetching it.".into(),
            "All figures are the server's processes' but for the pages, which are the whole guest's.".into(),
        ])
    }

    fn machine(&self) -> Value {
        let lines = self.lines;
        let has = lines.machine("flags");
        let flags: Vec<&str> =
            has.split(' ').filter(|flag| PROCESSOR_FLAGS.contains(flag)).collect();
        let mitigations: Map<String, Value> = lines
            .machine
            .iter()
            .filter(|(name, _)| name == "mitigation")
            .filter_map(|(_, value)| value.split_once(' '))
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        json!({
            "kernel": lines.machine("kernel"), "processor": lines.machine("processor"),
            "processor_model": lines.machine("model"), "cpus": 1, "flags": flags,
            "memory_bytes": lines.machine("memory").parse::<u64>().unwrap_or_default(),
            "mitigations": mitigations, "governor": null,
            "virtualization": format!("qemu-tcg {}", self.bed.qemu),
            "init_on_alloc": lines.machine("init-on-alloc") == "on",
            "kernel_tls": "available", "load_average": 0.0,
        })
    }
}

pub const SCENARIO: &str = "work";
const FORMAT: u32 = 1;
