//! Machines laid out in folders.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const XEON: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\
    model name\t: Intel(R) Xeon(R) Processor @ 2.50GHz\nstepping\t: 7\nmicrocode\t: 0x1\n\
    flags\t\t: fpu vme aes avx2 adx erms avx512f hypervisor\nbugs\t\t: spectre_v1\n\n\
    processor\t: 1\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\
    model name\t: Intel(R) Xeon(R) Processor @ 2.50GHz\nflags\t\t: fpu\n";
const ARM: &str = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd aes pmull sha2\nCPU implementer\t: 0x41\n\
    CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n";
const TCG: &str = "processor\t: 0\ncpu family\t: 6\nmodel name\t: QEMU TCG CPU version 2.5+\nflags\t: aes hypervisor\n";

fn machine(files: &[(&str, &str)]) -> Machine {
    let root = TempDir::new().unwrap();
    for (path, content) in files {
        write(root.path(), path, content.as_bytes());
    }
    Machine::beneath(root.path(), "6.1.0-56-cloud-amd64", "yes".to_owned())
}

fn write(root: &Path, path: &str, content: &[u8]) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn a_virtual_xeon_is_described() {
    let machine = machine(&[
        ("proc/cpuinfo", XEON),
        ("proc/meminfo", "MemTotal:       24684092 kB\nMemFree:        1 kB\n"),
        ("proc/loadavg", "0.14 0.19 1.05 1/94 15702\n"),
        ("proc/cmdline", "quiet init_on_alloc=1 init_on_alloc=0\n"),
        ("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
        ("sys/class/dmi/id/sys_vendor", "Amazon EC2\n"),
    ]);
    assert_eq!(machine.kernel, "6.1.0-56-cloud-amd64");
    assert_eq!(machine.processor, "Intel(R) Xeon(R) Processor @ 2.50GHz");
    assert_eq!(machine.processor_model, "family 6, model 85, stepping 7");
    assert_eq!(machine.cpus, 2);
    assert_eq!(machine.flags, ["aes", "avx2", "avx512f", "adx", "erms", "hypervisor"]);
    assert_eq!(machine.memory_bytes, 24_684_092 * 1024);
    assert_eq!(machine.load_average, 0.14);
    assert_eq!(machine.init_on_alloc, Some(false));
    assert_eq!(machine.governor.as_deref(), Some("powersave"));
    assert_eq!(machine.virtualization.as_deref(), Some("kvm"));
    assert_eq!(machine.mitigations["meltdown"], "Mitigation: PTI");
}

#[test]
fn an_arm_processor_is_named_by_its_part() {
    let machine = machine(&[("proc/cpuinfo", ARM)]);
    assert_eq!(machine.processor, "ARM part 0xd0c");
    assert_eq!(machine.processor_model, "implementer 0x41, part 0xd0c, revision 1");
    assert_eq!(machine.flags, ["aes", "pmull", "sha2", "asimd"]);
    assert_eq!(machine.virtualization, None, "nobody tells");
}

#[test]
fn emulators_and_bare_metal_are_told_apart() {
    assert_eq!(machine(&[("proc/cpuinfo", TCG)]).virtualization.as_deref(), Some("qemu-tcg"));
    let metal = XEON.replace(" hypervisor", "");
    assert_eq!(machine(&[("proc/cpuinfo", &metal)]).virtualization.as_deref(), Some("none"));
    let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let found = machine(&[("proc/cpuinfo", XEON), (clock, "kvm-clock\n")]).virtualization;
    assert_eq!(found.as_deref(), Some("kvm"));
    let found = machine(&[("proc/cpuinfo", XEON)]).virtualization;
    assert_eq!(found.as_deref(), Some("a virtual machine"));
}

#[test]
fn an_empty_machine_is_no_panic_and_knows_nothing() {
    let machine = machine(&[]);
    assert_eq!((machine.cpus, machine.memory_bytes), (0, 0));
    assert_eq!(
        (machine.init_on_alloc, machine.governor, machine.virtualization),
        (None, None, None)
    );
}

#[test]
fn the_kernels_own_configuration_tells_the_default() {
    let root = TempDir::new().unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"CONFIG_TLS=m\nCONFIG_INIT_ON_ALLOC_DEFAULT_ON=y\n").unwrap();
    write(root.path(), "proc/config.gz", &packed.finish().unwrap());
    let found = Machine::beneath(root.path(), "6.1", String::new());
    assert_eq!(found.init_on_alloc, Some(true));
    write(root.path(), "proc/config.gz", b"no gzip");
    write(root.path(), "boot/config-6.1", b"# CONFIG_INIT_ON_ALLOC_DEFAULT_ON is not set\n");
    let found = Machine::beneath(root.path(), "6.1", String::new());
    assert_eq!(found.init_on_alloc, Some(false));
}

#[test]
fn this_machine_can_be_read() {
    let machine = Machine::read();
    assert!(machine.cpus > 0 && machine.memory_bytes > 0, "{machine:?}");
    assert!(machine.kernel_tls == "yes" || machine.kernel_tls.starts_with("no: "), "{machine:?}");
}

proptest! {
    #[test]
    fn odd_text_is_no_panic(text in "(?s).{0,200}") {
        let _ = (CpuInfo::parse(&text), load_average(&text));
        let _ = (kibibytes(&format!("MemTotal:{text}"), "MemTotal:"), init_on_alloc(&text));
        let _ = built_to_clear(&text);
        let _ = CpuInfo::parse(&format!("processor: 0\nflags:{text}\nmodel name:{text}"));
    }
}
