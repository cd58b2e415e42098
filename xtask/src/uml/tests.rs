use super::*;

fn script(command: &[&str]) -> String {
    let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    let folder = Path::new("/somewhere");
    init_script(Path::new("/b/busybox"), Path::new("/b/uml"), folder, folder, &command)
}

#[test]
fn every_place_in_the_script_is_filled() {
    let text = script(&["ls", "two words"]);
    assert!(!text.contains('@'), "{text}");
    assert!(text.contains("(exec 'ls' 'two words')"), "{text}");
}

#[test]
fn the_script_is_one_a_shell_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("init");
    fs::write(&path, script(&["sh", "-c", "exit 3"])).unwrap();
    process::run_quietly(Command::new("sh").arg("-n").arg(&path)).unwrap();
}

#[test]
fn only_run_is_known() {
    for words in [&[][..], &["walk".to_owned()], &["run".to_owned(), "--".to_owned()]] {
        assert!(run(words).is_err_and(|error| error.contains("uml run")));
    }
}
