use super::*;
use crate::files::create_folder;

fn guest(command: &[&str]) -> Guest {
    Guest {
        kernel: Kernel::Linux6_1,
        image: Image::Test,
        machine: Machine::default(),
        files: Vec::new(),
        environment: vec![("KEY".into(), "it's".into())],
        command: command.iter().map(|&word| word.to_owned()).collect(),
        out: PathBuf::from("out"),
        limit: Duration::from_secs(1),
    }
}

#[test]
fn the_script_quotes_what_the_shell_would_split() {
    let script = guest(&["echo", "two words", "a'b"]).start_script();
    assert!(script.contains(r"'echo' 'two words' 'a'\''b' </dev/null"), "{script}");
    assert!(script.contains(r"export KEY='it'\''s'"), "{script}");
}

#[test]
fn the_status_is_the_commands_own() {
    let script = guest(&["false"]).start_script();
    let (_, after) = script.split_once("'false'").unwrap();
    assert!(after.lines().nth(1).unwrap().starts_with("echo $? >/status"), "{script}");
}

#[test]
fn the_script_is_one_a_shell_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("start");
    for command in [[].as_slice(), &["sh", "-c", "exit 3"]] {
        fs::write(&path, guest(command).start_script()).unwrap();
        process::run_quietly(Command::new("sh").arg("-n").arg(&path)).unwrap();
    }
}

#[test]
fn files_and_folders_are_placed_under_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    create_folder(&source).unwrap();
    fs::write(source.join("file"), "content").unwrap();
    place(&source, &folder.path().join("target")).unwrap();
    place(&source.join("file"), &folder.path().join("alone")).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("target/file")).unwrap(), "content");
    assert_eq!(fs::read_to_string(folder.path().join("alone")).unwrap(), "content");
}

#[test]
fn a_crash_is_described_by_the_end_of_the_console() {
    let folder = tempfile::tempdir().unwrap();
    let console = folder.path().join("console");
    fs::write(&console, "line\n".repeat(100) + "Kernel panic\n").unwrap();
    let text = describe_crash(None, &console);
    assert!(text.ends_with("Kernel panic"), "{text}");
    assert_eq!(text.lines().count(), CONSOLE_LINES_SHOWN + 1);
}

#[test]
fn a_warning_of_the_kernels_own_code_is_a_complaint() {
    let messages = "[    1.0] mtrr: your CPUs had inconsistent settings\n\
                    [    9.1] WARNING: CPU: 0 PID: 7 at net/tls/tls_sw.c:100 tls_sw_sendmsg\n\
                    [    9.2] watchdog: BUG: soft lockup - CPU#1 stuck for 23s!\n\
                    [    9.3] BUG: unable to handle page fault\n";
    assert_eq!(complaints(messages).len(), 2);
}
