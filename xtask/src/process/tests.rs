use super::*;

fn lines_of(chunks: &[&[u8]]) -> Vec<String> {
    let mut seen = Vec::new();
    let mut lines = Lines::default();
    for chunk in chunks {
        lines.push(chunk, &mut |line| seen.push(line.to_owned()));
    }
    lines.finish(&mut |line| seen.push(line.to_owned()));
    seen
}

#[test]
fn lines_are_put_together_across_chunks() {
    assert_eq!(lines_of(&[b"one\ntw", b"o\r\nthree"]), ["one", "two", "three"]);
}

#[test]
fn an_endless_line_is_cut_at_the_limit() {
    let chunk = vec![b'x'; LINE_BYTES_MAX + 1];
    assert_eq!(lines_of(&[&chunk]).len(), 2);
}

#[test]
fn a_process_past_its_deadline_is_killed() {
    let ending = follow(
        Command::new("tail").args(["-f", "/dev/null"]),
        Duration::from_millis(50),
        &mut std::io::sink(),
        &mut |_| {},
    );
    assert!(matches!(ending, Ok(Exit::TimedOut(_))), "{ending:?}");
}

#[test]
fn the_exit_status_and_the_output_are_reported() {
    let mut seen = Vec::new();
    let ending = follow(
        Command::new("sh").args(["-c", "echo hello; exit 3"]),
        Duration::from_secs(60),
        &mut std::io::sink(),
        &mut |line| seen.push(line.to_owned()),
    );
    assert!(matches!(ending, Ok(Exit::Exited(status)) if status.code() == Some(3)));
    assert_eq!(seen, ["hello"]);
}

#[test]
fn a_failing_command_is_named_in_the_error() {
    let error = read(Command::new("sh").args(["-c", "echo broken >&2; exit 1"])).unwrap_err();
    assert!(error.contains("sh -c") && error.contains("broken"), "{error}");
}
