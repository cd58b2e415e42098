//! The checks on made-up machines, and the whole report.

mod probed;

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use kettle_kernel::ktls::Version;
use kettle_kernel::netlink::{NetworkCard, Offload};

use super::*;
use crate::finding::State::{self, Bad, Good, Warning};
use crate::machine::fixture::Fixture;
use crate::render::Style;
use crate::report::Report;

/// The finding of one check by its name on the screen.
fn found(fixture: &Fixture, name: &str) -> Option<Finding> {
    let report = Report::of(&fixture.machine);
    report.findings().iter().find(|finding| finding.check == name).cloned()
}

fn state_and_fix(fixture: &Fixture, name: &str) -> (State, String) {
    let finding = found(fixture, name).unwrap();
    (finding.state, finding.fix.join("\n"))
}

#[test]
fn a_kernel_without_the_option_is_named_and_asks_for_no_module() {
    let fixture = Fixture::without_ktls("6.18.44")
        .file("boot/config-6.18.44", "CONFIG_TLS_TOE=y\n# CONFIG_TLS is not set\n");
    let (state, fix) = state_and_fix(&fixture, "CONFIG_TLS");
    assert_eq!(state, Bad);
    assert!(fix.contains("https://") && fix.contains("docs/kernels.md"), "{fix}");
    assert!(found(&fixture, "tls module").is_none());
    assert!(found(&fixture, "at boot").is_none());
    let report = Report::of(&fixture.machine);
    assert_eq!(report.exit_code(), 1);
    assert_eq!(report.json()["ktls_tx"], false);
    assert_eq!(report.json()["obstacle"], report.obstacle().unwrap());
    assert_eq!(report.obstacle().unwrap(), "CONFIG_TLS not set in /boot/config-6.18.44");
    let screen = report.render(Style::Plain);
    assert!(screen.lines().nth(2).unwrap().starts_with("kTLS does not work here"), "{screen}");
    assert_eq!(Report::of(&Fixture::with_ktls("6.1.1").machine).obstacle(), None);
}

#[test]
fn the_kernels_own_configuration_comes_first() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"CONFIG_TLS=y\nCONFIG_TLS_DEVICE=y\n").unwrap();
    let fixture = Fixture::with_ktls("6.12.120")
        .file("proc/config.gz", packed.finish().unwrap())
        .file("boot/config-6.12.120", "# CONFIG_TLS is not set\n");
    let finding = found(&fixture, "CONFIG_TLS").unwrap();
    assert_eq!(
        (finding.state, finding.message.as_str()),
        (Good, "built in, network cards may help")
    );
}

#[test]
fn what_the_kernel_cannot_confine_is_said_with_its_reason() {
    let mut fixture = Fixture::with_ktls("6.12.1");
    assert_eq!(state_and_fix(&fixture, "sandbox").0, Good);
    fixture.machine.landlock = Err("not turned on".to_owned());
    let finding = found(&fixture, "sandbox").unwrap();
    assert_eq!(finding.state, Warning);
    assert!(finding.message.contains("not turned on"), "{}", finding.message);
    fixture.machine.seccomp = Err("too old".to_owned());
    let finding = found(&fixture, "sandbox").unwrap();
    assert!(finding.message.contains("too old"), "{}", finding.message);
}

#[test]
fn without_a_configuration_the_list_of_modules_answers() {
    for (file, content, expected) in [
        ("modules.dep", "kernel/net/tls/tls.ko.xz:\n", Good),
        ("modules.dep", "kernel/drivers/x.ko: kernel/net/tls/tls.ko\n", Warning),
        ("modules.builtin", "kernel/net/tls/tls.ko\n", Good),
    ] {
        let fixture =
            Fixture::without_ktls("6.1.0").file(&format!("lib/modules/6.1.0/{file}"), content);
        assert_eq!(found(&fixture, "CONFIG_TLS").unwrap().state, expected, "{content}");
    }
}

#[test]
fn a_module_that_is_not_loaded_is_loaded_with_modprobe() {
    let fixture = Fixture::without_ktls("6.12.120")
        .file("boot/config-6.12.120", "CONFIG_TLS=m\n")
        .file("proc/sys/net/ipv4/tcp_available_ulp", "espintcp mptcp\n")
        .file("proc/modules", "xtls 1 0 - Live\n");
    let (state, fix) = state_and_fix(&fixture, "tls module");
    assert_eq!(state, Bad);
    assert!(fix.starts_with("sudo modprobe tls"), "{fix}");
    let boot = state_and_fix(&fixture, "at boot");
    assert_eq!(boot, (Warning, "echo tls | sudo tee /etc/modules-load.d/kettle.conf".to_owned()));
}

#[test]
fn a_kernel_that_takes_no_more_modules_needs_a_boot() {
    let fixture = Fixture::without_ktls("6.12.120")
        .file("boot/config-6.12.120", "CONFIG_TLS=m\n")
        .file("proc/sys/kernel/modules_disabled", "1\n");
    let (_, fix) = state_and_fix(&fixture, "tls module");
    assert!(fix.contains("modules_disabled") && !fix.contains("modprobe"), "{fix}");
}

#[test]
fn a_loaded_module_that_boot_loads_needs_nothing() {
    let fixture = Fixture::with_ktls("6.12.120")
        .file("boot/config-6.12.120", "CONFIG_TLS=m\n")
        .file("proc/sys/net/ipv4/tcp_available_ulp", "mptcp tls\n")
        .file("proc/modules", "tls 135168 0 - Live 0x0\n")
        .file("etc/modules-load.d/a.conf", "# tls\nloop\n")
        .file("etc/modules-load.d/b.conf", "tls\n");
    assert_eq!(found(&fixture, "tls module").unwrap().message, "loaded; TCP offers: mptcp tls");
    let boot = found(&fixture, "at boot").unwrap();
    assert_eq!(boot.message, "/etc/modules-load.d/b.conf loads the module");
}

#[test]
fn who_may_load_the_module_is_read_from_the_capabilities() {
    for (effective, expected) in [("000001ffffffffff", "would load"), ("0", "may not")] {
        let fixture = Fixture::without_ktls("6.12.120")
            .file("boot/config-6.12.120", "CONFIG_TLS=m\n")
            .file("proc/self/status", format!("Name:\tx\nCapEff:\t{effective}\n"));
        let message = found(&fixture, "at boot").unwrap().message;
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn capabilities_in_a_user_namespace_load_no_module() {
    for (map, expected) in [
        ("         0          0 4294967295\n", "would load"),
        ("         0       1000          1\n", "may not"),
        ("         0     100000      65536\n", "may not"),
        ("         0          0          1\n         1     100000      65536\n", "may not"),
    ] {
        let fixture = Fixture::without_ktls("6.12.120")
            .file("boot/config-6.12.120", "CONFIG_TLS=m\n")
            .file("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n")
            .file("proc/self/uid_map", map);
        let message = found(&fixture, "at boot").unwrap().message;
        assert!(message.contains(expected), "{map}: {message}");
    }
}

#[test]
fn key_updates_count_only_where_something_is_sent() {
    assert!(found(&Fixture::without_ktls("6.1.1"), "key updates").is_none());
    let mut fixture = Fixture::with_ktls("6.14.1");
    assert_eq!(found(&fixture, "key updates").unwrap().state, Warning);
    for suite in &mut fixture.machine.capabilities.suites {
        suite.rekey = Ok(());
    }
    assert_eq!(found(&fixture, "key updates").unwrap().state, Good);
}

#[test]
fn releases_with_known_bugs_are_told_what_they_lack() {
    for (release, expected) in [
        ("6.1.176", Some("6.1.192")),
        ("6.1.192", None),
        ("6.12.104", Some("6.12.115")),
        ("6.12.115", None),
        ("6.18.1", None),
        ("5.14.0-503.el9.x86_64", None),
    ] {
        let finding = found(&Fixture::with_ktls(release), "known bugs").unwrap();
        match expected {
            Some(fixed) => {
                assert_eq!(finding.state, Warning);
                assert!(finding.message.contains(fixed), "{}", finding.message);
            }
            None => assert_eq!(finding.state, Good, "{}", finding.message),
        }
    }
}

#[test]
fn the_update_command_is_the_distributions_own() {
    for (text, expected) in [
        ("ID=debian\n", "sudo apt update && sudo apt full-upgrade"),
        ("ID=pop\nID_LIKE=\"ubuntu debian\"\n", "sudo apt update && sudo apt full-upgrade"),
        ("ID=rocky\nID_LIKE=\"rhel centos fedora\"\n", "sudo dnf upgrade kernel"),
        ("ID=\"sles\"\nID_LIKE=\"suse\"\n", "sudo zypper update kernel-default"),
        ("ID=other\n", "update the kernel package"),
    ] {
        let fixture = Fixture::with_ktls("6.1.1").file("etc/os-release", text);
        let (_, fix) = state_and_fix(&fixture, "known bugs");
        assert!(fix.starts_with(expected), "{fix}");
    }
}

#[test]
fn the_driver_with_the_highest_priority_is_judged() {
    let block = |driver: &str, priority: u32, internal: &str| {
        format!(
            "name         : gcm(aes)\ndriver       : {driver}\npriority     : {priority}\ninternal     : {internal}\n\n"
        )
    };
    let slow = block("gcm_base(ctr(aes-generic),ghash-generic)", 100, "no");
    let fast = block("generic-gcm-aesni", 400, "no");
    let hidden = block("__generic-gcm-aesni", 900, "yes");
    for (text, driver, state) in [
        (format!("{slow}{fast}{hidden}"), "generic-gcm-aesni", Good),
        (slow, "gcm_base(ctr(aes-generic),ghash-generic)", Warning),
        ("name         : sha1\ndriver       : x\n".to_owned(), "none listed yet", Good),
    ] {
        let fixture = Fixture::with_ktls("6.12.120").file("proc/crypto", text);
        let finding = found(&fixture, "AES-GCM driver").unwrap();
        assert_eq!(finding.state, state);
        assert!(finding.message.starts_with(driver), "{}", finding.message);
    }
}

#[test]
fn a_processor_without_aes_prefers_chacha() {
    let slow = Fixture::with_ktls("6.12.120").file("proc/cpuinfo", "flags\t\t: fpu avx2\n");
    let finding = found(&slow, "processor").unwrap();
    assert_eq!(finding.state, Warning);
    assert!(finding.message.contains("(AVX2)"), "{}", finding.message);
    for (text, expected) in [
        ("processor: 0\nflags\t\t: aes vaes sha_ni\n", "AES, VAES, SHA"),
        ("Features\t: fp aes pmull sha2\n", "AES, PMULL, SHA-2"),
    ] {
        let fixture = Fixture::with_ktls("6.12.120").file("proc/cpuinfo", text);
        let finding = found(&fixture, "processor").unwrap();
        assert_eq!((finding.state, finding.message.as_str()), (Good, expected));
    }
}

#[test]
fn a_card_that_can_and_does_not_is_switched_on() {
    let card = |name: &str, tls_tx| NetworkCard {
        name: name.to_owned(),
        tls_tx,
        tls_rx: Offload::Unsupported,
    };
    let mut fixture = Fixture::with_ktls("6.12.120");
    let cards = [card("lo", Offload::Unsupported), card("eth0", Offload::Unsupported)];
    fixture.machine.network_cards = Ok(cards.to_vec());
    let none = found(&fixture, "network cards").unwrap();
    assert!(none.message.starts_with("none of 1"), "{}", none.message);
    fixture.machine.network_cards = Ok(vec![card("eth1", Offload::On), card("eth2", Offload::Off)]);
    let (state, fix) = state_and_fix(&fixture, "network cards");
    assert_eq!((state, fix.as_str()), (Warning, "sudo ethtool -K eth2 tls-hw-tx-offload on"));
    fixture.machine.network_cards = Err("no such family".to_owned());
    assert_eq!(found(&fixture, "network cards").unwrap().state, Good);
}

#[test]
fn a_low_water_mark_below_one_record_is_a_warning() {
    for (value, state) in [("16405\n", Warning), ("16406\n", Good), ("4294967295\n", Good)] {
        let fixture =
            Fixture::with_ktls("6.12.120").file("proc/sys/net/ipv4/tcp_notsent_lowat", value);
        assert_eq!(found(&fixture, "low-water mark").unwrap().state, state, "{value}");
    }
}

#[test]
fn the_last_word_on_page_clearing_wins() {
    for (command_line, expected) in [
        ("quiet init_on_alloc=1 init_on_alloc=0\n", "init_on_alloc=0"),
        ("quiet\n", "init_on_alloc=1"),
        ("init_on_alloc=on\n", "init_on_alloc=1"),
    ] {
        let fixture = Fixture::with_ktls("6.12.120")
            .file("proc/cmdline", command_line)
            .file("boot/config-6.12.120", "CONFIG_INIT_ON_ALLOC_DEFAULT_ON=y\n");
        let message = found(&fixture, "page clearing").unwrap().message;
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn few_open_files_are_a_warning() {
    let mut fixture = Fixture::with_ktls("6.12.120");
    assert_eq!(found(&fixture, "open files").unwrap().state, Good);
    fixture.machine.open_files.maximum = Some(4096);
    assert_eq!(found(&fixture, "open files").unwrap().state, Warning);
    fixture.machine.open_files.maximum = None;
    assert_eq!(found(&fixture, "open files").unwrap().state, Good);
}

#[test]
fn an_old_kernel_gets_a_warning_and_a_new_one_its_newest_features() {
    let old = found(&Fixture::without_ktls("4.9.1"), "kernel").unwrap();
    assert_eq!(old.state, Warning);
    assert_eq!(old.message, "4.9.1 brings no kernel TLS; 4.13 adds kTLS sending");
    let new = found(&Fixture::with_ktls("6.12.120"), "kernel").unwrap();
    assert_eq!(new.state, Good);
    assert!(new.message.ends_with("full records from sendfile; 6.14 adds key updates"));
    assert_eq!(found(&Fixture::with_ktls("odd"), "kernel").unwrap().state, Warning);
    // No praise for what a kernel of this version could do and this one does not.
    let without = found(&Fixture::without_ktls("6.12.120"), "kernel").unwrap();
    assert_eq!(without.state, Warning);
    assert!(without.message.starts_with("6.12.120 could do, if kTLS worked here: "), "{without:?}");
}

#[test]
fn the_screen_is_80_columns_wide_and_every_complaint_has_a_way_out() {
    for fixture in [
        Fixture::without_ktls("6.1.1"),
        Fixture::with_ktls("6.1.1"),
        Fixture::with_ktls("6.12.1").file("proc/sys/net/ipv4/tcp_notsent_lowat", "1"),
        Fixture::without_ktls("6.1.1").file("boot/config-6.1.1", "CONFIG_TLS=m\n"),
    ] {
        let report = Report::of(&fixture.machine);
        for finding in report.findings() {
            assert_eq!(finding.state == Good, finding.fix.is_empty(), "{finding:?}");
        }
        let text = report.render(Style::Plain);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(text.lines().count() <= 50, "{text}");
    }
}

#[test]
fn the_json_form_holds_the_probe_and_the_findings() {
    let json = Report::of(&Fixture::with_ktls("6.14.1").machine).json();
    assert_eq!(json["ktls_tx"], true);
    assert_eq!(json["kernel"], "6.14.1");
    assert_eq!(json["probe"]["suites"].as_array().unwrap().len(), 6);
    assert_eq!(json["probe"]["suites"][0]["version"], Version::Tls12.name());
    assert_eq!(json["probe"]["suites"][0]["tx"]["works"], true);
    assert_eq!(json["probe"]["suites"][0]["rekey"]["reason"], "not here");
    assert_eq!(json["findings"][0]["check"], "kernel");
    assert_eq!(json["findings"][0]["state"], "good");
}

#[test]
fn limits_of_a_control_group_are_shown() {
    let fixture = || {
        let mounts = "25 24 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let fixture = Fixture::with_ktls("6.12.120").file("proc/self/mountinfo", mounts);
        fixture.file("proc/self/cgroup", "0::/kettle\n")
    };
    assert!(found(&fixture(), "control group").is_none());
    let limited = fixture()
        .file("sys/fs/cgroup/kettle/cpu.max", "250000 100000\n")
        .file("sys/fs/cgroup/kettle/memory.max", "134217728\n");
    let finding = found(&limited, "control group").unwrap();
    assert!(finding.message.contains("2.5 processors"), "{}", finding.message);
    assert!(finding.message.contains("128 MiB of memory"), "{}", finding.message);
}

#[test]
fn served_folders_are_named_with_what_is_known_of_their_file_systems() {
    let mut fixture = Fixture::with_ktls("6.12.120");
    assert!(found(&fixture, "served folders").is_none());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "").unwrap();
    fixture.machine.folders = vec![folder.path().to_owned(), "/proc".into(), "/nowhere".into()];
    let finding = found(&fixture, "served folders").unwrap();
    assert_eq!(finding.state, Warning);
    let lies_on = format!("{} lies on ", folder.path().display());
    assert!(finding.message.contains(&lies_on), "{}", finding.message);
    let proc = "/proc lies on an unknown file system, which may never answer";
    assert!(finding.message.contains(proc), "{}", finding.message);
    assert!(finding.message.contains("/nowhere cannot be opened"), "{}", finding.message);
}

#[test]
fn a_served_folder_that_never_answers_keeps_nobody_waiting() {
    let mut fixture = Fixture::with_ktls("6.12.120");
    let folder = tempfile::tempdir().unwrap();
    // A process that opens a pipe waits for its other end.
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fixture.machine.folders = vec![pipe];
    let finding = found(&fixture, "served folders").unwrap();
    assert_eq!(finding.state, Warning);
    assert!(finding.message.ends_with("does not answer"), "{}", finding.message);
}

/// A card with so many queues, on interrupts from 40 with these affinities, that has received this much.
fn card(fixture: Fixture, queues: usize, affinities: &[&str], packets: u64) -> Fixture {
    let of = |path: &str| format!("sys/class/net/eth0/{path}");
    let mut fixture = fixture
        .file(&of("device/vendor"), "0x8086")
        .file(&of("statistics/rx_packets"), format!("{packets}\n"));
    for queue in 0..queues {
        fixture = fixture.file(&of(&format!("queues/rx-{queue}/rps_cpus")), "00000000,00000000\n");
    }
    let mut counts =
        "           CPU0       CPU1\n 39:          0          0  PCI-MSI eth0-config\n".to_owned();
    fixture =
        fixture.file(&of("device/msi_irqs/39"), "").file("proc/irq/39/smp_affinity_list", "3\n");
    for (number, affinity) in (40..).zip(affinities) {
        counts += &format!(" {number}:         17          0  PCI-MSI eth0-{number}\n");
        fixture = fixture
            .file(&of(&format!("device/msi_irqs/{number}")), "")
            .file(&format!("proc/irq/{number}/effective_affinity_list"), format!("{affinity}\n"));
    }
    fixture.file("proc/interrupts", counts)
}

#[test]
fn queues_that_interrupt_one_processor_are_named() {
    let machine = || Fixture::with_ktls("6.12.1");
    let narrow = card(machine(), 2, &["0", "0"], 1 << 20);
    let (state, fix) = state_and_fix(&narrow, "interrupts");
    assert_eq!(state, Warning);
    assert!(fix.contains("irqbalance") && fix.contains("/proc/irq/{40,41}/"), "{fix}");
    let message = found(&narrow, "interrupts").unwrap().message;
    assert!(message.contains("all 2 queues of eth0 interrupt processor 0"), "{message}");

    let spread = card(machine(), 2, &["0", "2"], 1 << 20);
    assert_eq!(found(&spread, "interrupts").unwrap().state, Good);
    // A card that nobody uses, and interrupts that nobody knows.
    assert!(found(&card(machine(), 2, &["0", "0"], 9), "interrupts").is_none());
    assert!(found(&card(machine(), 2, &[], 1 << 20), "interrupts").is_none());
    // One processor has nobody to share with.
    let mut alone = card(machine(), 2, &["0", "0"], 1 << 20);
    alone.machine.processors = 1;
    assert!(found(&alone, "interrupts").is_none());
}

#[test]
fn a_card_with_one_queue_wants_packet_steering() {
    let mut fixture = card(Fixture::with_ktls("6.12.1"), 1, &["0"], 1 << 20);
    let path = "/sys/class/net/eth0/queues/rx-0/rps_cpus";
    let (state, fix) = state_and_fix(&fixture, "interrupts");
    assert_eq!((state, fix), (Warning, format!("echo f | sudo tee {path}")));
    fixture.machine.processors = 70;
    let (_, fix) = state_and_fix(&fixture, "interrupts");
    assert_eq!(fix, format!("echo 3f,ffffffff,ffffffff | sudo tee {path}"));
    let steered = fixture.file(&path[1..], "00000000,0000000f\n");
    assert_eq!(found(&steered, "interrupts").unwrap().state, Good);
}

#[test]
fn a_table_of_connections_that_is_small_or_nearly_full_is_named() {
    let of = |most: &str, tracked: &str| {
        let folder = "proc/sys/net/netfilter/nf_conntrack";
        let fixture = Fixture::with_ktls("6.12.1").file(&format!("{folder}_max"), most);
        let fixture = fixture.file(&format!("{folder}_count"), tracked);
        found(&fixture, "tracking").unwrap()
    };
    assert_eq!(of("262144\n", "12\n").state, Good);
    let full = of("262144\n", "209716\n");
    assert_eq!(full.state, Warning);
    assert!(full.message.contains("209716 of at most 262144"), "{}", full.message);
    assert_eq!(full.fix[0], "sudo sysctl -w net.netfilter.nf_conntrack_max=1048576");
    assert!(full.fix[1].starts_with("echo 262144 | sudo tee /sys/module/"), "{}", full.fix[1]);
    assert_eq!(of("32768\n", "1\n").state, Warning);
    // No module, or a kernel that tells nothing of it.
    assert!(found(&Fixture::with_ktls("6.12.1"), "tracking").is_none());
    assert_eq!(of("18446744073709551615\n", "1\n").state, Good);
}
