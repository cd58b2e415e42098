use std::path::Path;

use super::*;

impl Resources {
    /// Those of a process in a control group with these limits.
    pub(crate) fn in_a_group(
        processors: usize,
        quota: Option<f64>,
        memory_mib: Option<u64>,
    ) -> Self {
        let memory_bytes = memory_mib.map(|mib| mib * MIB);
        Self { processors, limits: Limits { processors: quota, memory_bytes } }
    }
}

fn filled_in(resources: Resources, text: &str) -> Config {
    let site = "[[listener]]\naddress = \"127.0.0.1:8443\"\n[[site]]\nnames = [\"a\"]\nself_signed = true\n\
                [[site.route]]\nroot = \"/\"\n";
    let mut config = kettle_config::parse(&format!("{text}\n{site}"), Path::new("k.toml")).unwrap();
    resources.fill_in(&mut config, None);
    config
}

/// All that the workers keep by default.
fn kept_bytes(config: &Config) -> u64 {
    let limits = &config.limits;
    let worker = limits.hot_memory_bytes + limits.open_files * OPEN_FILE_BYTES + BUFFER_BYTES;
    (worker * config.server.workers.unwrap()) as u64
}

#[test]
fn there_are_as_many_workers_as_processors_or_as_their_time_allows() {
    for (quota, workers) in
        [(None, 64), (Some(2.0), 2), (Some(1.5), 2), (Some(0.1), 1), (Some(100.0), 64)]
    {
        let config = filled_in(Resources::in_a_group(64, quota, None), "");
        assert_eq!(config.server.workers, Some(workers), "{quota:?}");
        assert_eq!(config.limits, Config::default().limits);
    }
    let written =
        filled_in(Resources::in_a_group(64, Some(2.0), Some(64)), "[server]\nworkers = 5");
    assert_eq!(written.server.workers, Some(5));
}

#[test]
fn what_workers_keep_by_default_stays_within_a_share_of_the_memory() {
    for memory_mib in [64, 100, 128, 512, 4_096, 65_536] {
        for processors in [1, 2, 8, 64] {
            let config = filled_in(Resources::in_a_group(processors, None, Some(memory_mib)), "");
            let kept = kept_bytes(&config);
            assert!(kept <= memory_mib * MIB / MEMORY_SHARE, "{memory_mib} {processors}: {kept}");
            assert!(config.limits.hot_memory_bytes > 0, "{memory_mib} {processors}");
        }
    }
    let ample = filled_in(Resources::in_a_group(2, None, Some(65_536)), "");
    assert_eq!(ample.limits, Config::default().limits);
}

#[test]
fn what_the_operator_wrote_stands() {
    let text = "[limits]\nhot_memory = \"1GiB\"\nopen_files = 100000";
    let config = filled_in(Resources::in_a_group(2, None, Some(128)), text);
    assert_eq!((config.limits.hot_memory_bytes, config.limits.open_files), (1 << 30, 100_000));
}

#[test]
fn the_line_names_both_limits_and_what_came_of_them() {
    let none = Resources::in_a_group(8, None, None);
    assert_eq!(none.line(&filled_in(none, "")), None);
    let both = Resources::in_a_group(8, Some(2.0), Some(128));
    assert_eq!(
        both.line(&filled_in(both, "")).unwrap(),
        "the control group allows the time of 2 of 8 processors and 128 MiB of memory: 2 workers, each with up to 1024 \
         open files and 22 MiB of files in memory"
    );
}
