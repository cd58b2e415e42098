use super::*;

fn parse(line: &str) -> Result<Arguments, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Arguments::parse(&words)
}

#[test]
fn options_end_at_the_command() {
    let arguments = parse("--kernel 6.12 --icount --no-erms -- ls --kernel 6.1").unwrap();
    assert_eq!(arguments.kernel, Kernel::Linux6_12);
    assert!(arguments.machine.icount && !arguments.machine.erms);
    assert_eq!(arguments.command, ["ls", "--kernel", "6.1"]);
}

#[test]
fn files_and_variables_may_be_repeated() {
    let arguments = parse("--file a --file b --env X=1 --env Y=a=b").unwrap();
    assert_eq!(arguments.files, [PathBuf::from("a"), PathBuf::from("b")]);
    assert_eq!(arguments.environment.last(), Some(&("Y".to_owned(), "a=b".to_owned())));
}

#[test]
fn mistakes_are_named() {
    for (line, part) in [
        ("--kernel 5.4", "5.4"),
        ("--kernel", "--kernel"),
        ("--surprise x", "--surprise"),
        ("--timeout soon", "soon"),
        ("--env X", "NAME=VALUE"),
    ] {
        let error = parse(line).err().unwrap();
        assert!(error.contains(part), "{line}: {error}");
    }
}
