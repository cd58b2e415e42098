use super::*;

fn artifact(manifest: &str, kind: &str, is_test: bool, executable: &str) -> String {
    format!(
        r#"{{"reason":"compiler-artifact","manifest_path":"{manifest}","target":{{"kind":["{kind}"]}},"profile":{{"test":{is_test}}},"executable":{executable}}}"#
    )
}

fn messages(lines: &[String]) -> Result<Programs, String> {
    find(&lines.join("\n"), Path::new("/src"))
}

fn whole() -> Vec<String> {
    vec![
        artifact("/src/crates/app/Cargo.toml", "bin", true, r#""/t/deps/kettle-1""#),
        artifact("/src/crates/app/Cargo.toml", "bin", false, r#""/t/kettle""#),
        artifact("/src/crates/kernel/Cargo.toml", "lib", false, "null"),
        artifact("/src/crates/kernel/Cargo.toml", "lib", true, r#""/t/deps/kernel-2""#),
        artifact("/src/tests/Cargo.toml", "lib", true, r#""/t/deps/tests-3""#),
        artifact("/src/tests/Cargo.toml", "test", true, r#""/t/deps/suite-4""#),
        artifact("/registry/tests/Cargo.toml", "test", true, r#""/t/deps/foreign""#),
        r#"{"reason":"build-finished","success":true}"#.into(),
    ]
}

#[test]
fn each_program_is_found_by_its_manifest_and_kind() {
    assert_eq!(
        messages(&whole()),
        Ok(Programs {
            kettle: "/t/kettle".into(),
            kernel_tests: "/t/deps/kernel-2".into(),
            suite: vec!["/t/deps/suite-4".into()],
            harness_tests: Some("/t/deps/tests-3".into()),
        })
    );
}

#[test]
fn a_missing_server_is_an_error() {
    let lines: Vec<String> =
        whole().into_iter().filter(|line| !line.contains("/t/kettle")).collect();
    assert!(messages(&lines).is_err_and(|error| error.contains("kettle")));
}
