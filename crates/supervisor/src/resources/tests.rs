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
        let limits = Limits { processors: quota, memory_bytes };
        Self { processors, limits, descriptors: None }
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
fn encoders_are_as_many_as_processors_and_within_the_share() {
    for (processors, memory_mib, encoders) in [
        (1, None, 1),
        (2, None, 2),
        (64, None, 64),
        (64, Some(64), 1),
        (64, Some(512), 8),
        (2, Some(512), 2),
    ] {
        let resources = Resources::in_a_group(processors, None, memory_mib);
        assert_eq!(resources.encoders(), encoders, "{processors} {memory_mib:?}");
    }
}

#[test]
fn bodies_that_are_stored_take_a_part_of_the_memory() {
    for (memory_mib, mib) in [(None, 16), (Some(64), 4), (Some(256), 16), (Some(4_096), 16)] {
        let bytes = Resources::in_a_group(2, None, memory_mib).spooled_memory_bytes();
        assert_eq!(bytes as u64, mib * MIB, "{memory_mib:?}");
    }
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
            let resources = Resources::in_a_group(processors, None, Some(memory_mib));
            let kept = kept_bytes(&config) + (resources.encoders() * ENCODER_BYTES_MAX) as u64;
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
fn windows_grow_by_a_sixteenth_of_the_memory_that_is_allowed() {
    for (memory_mib, expected_mib) in [(None, 64), (Some(128), 8), (Some(16_384), 1_024)] {
        let resources = Resources::in_a_group(1, None, memory_mib);
        assert_eq!(resources.window_bytes(), expected_mib << 20);
    }
}

#[test]
fn what_waits_for_a_disk_takes_a_part_of_the_memory() {
    for (memory_mib, workers, kib) in [
        (None, 64, 32 << 10),
        (Some(16_384), 2, 32 << 10),
        (Some(512), 2, 16 << 10),
        (Some(128), 2, 4 << 10),
        (Some(64), 16, 512),
    ] {
        let resources = Resources::in_a_group(workers, None, memory_mib);
        assert_eq!(resources.unwritten_bytes(workers), kib << 10, "{memory_mib:?}");
    }
}

#[test]
fn the_line_names_both_limits_and_what_came_of_them() {
    let none = Resources::in_a_group(8, None, None);
    assert_eq!(none.line(&filled_in(none, "")), None);
    let both = Resources::in_a_group(8, Some(2.0), Some(128));
    assert_eq!(
        both.line(&filled_in(both, "")).unwrap(),
        "this process may use the time of 2 of 8 processors and 128 MiB of memory: 2 workers, each with up to 65536 \
         connections, 1024 open files and 18 MiB of files in memory; 2 files are compressed at a time"
    );
}

#[test]
fn connections_leave_descriptors_to_all_else() {
    let with = |descriptors, workers: usize, text: &str| {
        let descriptors = Some(descriptors);
        let resources = Resources { descriptors, ..Resources::in_a_group(workers, None, None) };
        filled_in(resources, text)
    };
    let backend = "[[backend]]\nname = \"app\"\n[[backend.server]]\naddress = \"127.0.0.1:1\"\n";
    for descriptors in [256, 1_024, 4_096, 65_536, 524_288, 1 << 30] {
        for (workers, text, each) in [(1, "", 1), (2, "", 1), (8, backend, 2)] {
            let config = with(descriptors, workers, text);
            let limits = &config.limits;
            let connections = limits.connections_per_worker;
            let taken = workers * (connections * each + connections / 4 + limits.open_files);
            let left = descriptors - taken as u64;
            assert!(left >= 64 + 8 * workers as u64, "{descriptors} {workers}: {left}");
            let is_least = left < 256;
            let is_most = limits == &Config::default().limits;
            assert!(is_least || is_most, "{descriptors} {workers}: {left} lie idle");
        }
    }
    let route = |number| {
        format!(
            "[[site.route]]\nprefix = \"/{number}\"\nroot = \"/\"\naccess_log = \"/{number}.log\"\n"
        )
    };
    let many: String = (0..100).map(route).collect();
    let cache = "[[cache]]\nname = \"c\"\ndirectory = \"/c\"\nsize = \"1GiB\"\n";
    let many = format!("{cache}[[site]]\nnames = [\"b\"]\nself_signed = true\n{many}");
    // A quarter of what is left to a worker is for files it keeps.
    let left = |text: &str| 4 * with(1_024, 1, text).limits.open_files;
    // 102, in steps: a reload that changes a limit ends connections. The routes have one root.
    assert_eq!(left("") - left(&many), 128);
    assert_eq!(
        left(""),
        left(&format!("{cache}[[site]]\nnames = [\"b\"]\nself_signed = true\n{}", route(1)))
    );
    let few = with(64, 4, "");
    assert_eq!((few.limits.connections_per_worker, few.limits.open_files), (1, 0));
    let written = "[limits]\nconnections_per_worker = 1000\nopen_files = 500";
    let limits = with(256, 1, written).limits;
    // 500 open files would leave no descriptor to a request.
    assert_eq!((limits.connections_per_worker, limits.open_files), (1_000, 91));

    let resources = Resources { descriptors: Some(256), ..Resources::in_a_group(1, None, None) };
    assert_eq!(
        resources.line(&filled_in(resources, "")).unwrap(),
        "this process may use 256 descriptors (ulimit -n): 1 worker, each with up to 110 connections, 45 open files and \
         64 MiB of files in memory; 1 file is compressed at a time"
    );
    let line = resources.line(&filled_in(resources, written)).unwrap();
    assert!(line.contains("up to 1000 connections, 91 open files"), "{line}");
}

#[test]
fn a_root_is_reckoned_once_and_ten_thousand_leave_descriptors_to_connections() {
    let sites = |root: &dyn Fn(usize) -> String| -> String {
        let site = |number| {
            let root = root(number);
            format!(
                "[[site]]\nnames = [\"s{number}\"]\nself_signed = true\n[[site.route]]\nroot = \"{root}\"\n"
            )
        };
        (0..10_000).map(site).collect()
    };
    let resources = Resources { descriptors: Some(20_000), ..Resources::in_a_group(2, None, None) };
    let connections = |text: &str| filled_in(resources, text).limits.connections_per_worker;
    let alone = connections("");
    assert_eq!(connections(&sites(&|_| "/srv".to_owned())), alone);
    let each = connections(&sites(&|number| format!("/srv/{number}")));
    assert!(each > 2_000 && each < alone, "{each} {alone}");
}
