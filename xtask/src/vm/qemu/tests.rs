use super::*;

fn arguments(machine: &Machine) -> String {
    let files = Files {
        kernel: "vmlinuz".into(),
        initramfs: "initramfs".into(),
        disks: vec![("root,1".into(), Access::Read), ("out".into(), Access::Write)],
        console: "console".into(),
        out: None,
    };
    let command = command(&Emulator::OfThisMachine, machine, &files, Terminal::Output);
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

#[test]
fn a_test_guest_has_two_cpus_and_threads() {
    let line = arguments(&Machine::default());
    assert!(line.contains("-smp 2 -accel tcg,thread=multi -cpu max "), "{line}");
    assert!(!line.contains("icount"), "{line}");
}

#[test]
fn counting_instructions_leaves_nothing_to_chance() {
    let line = arguments(&Machine { icount: true, ..Machine::default() });
    for word in [
        "-icount shift=0,sleep=off",
        "-smp 1",
        "max,-rdrand,-rdseed",
        "clock=vm",
        "nokaslr",
        "pc-q35-7.1",
    ] {
        assert!(line.contains(word), "{word} is missing in {line}");
    }
}

#[test]
fn the_cpu_can_hide_fast_string_copies() {
    let line = arguments(&Machine { erms: false, icount: true, ..Machine::default() });
    assert!(line.contains("-cpu max,-rdrand,-rdseed,-erms,-fsrm"), "{line}");
}

#[test]
fn a_plugin_comes_with_its_arguments() {
    let plugin = Some("counter.so,out=windows".to_owned());
    let line = arguments(&Machine { plugin, ..Machine::default() });
    assert!(line.contains("-plugin counter.so,out=windows "), "{line}");
}

#[test]
fn disks_keep_their_order_and_access() {
    let line = arguments(&Machine::default());
    assert!(line.contains("id=d0,format=raw,readonly=on,file=root,,1"), "{line}");
    assert!(line.contains("id=d1,format=raw,cache=unsafe,file=out"), "{line}");
}
