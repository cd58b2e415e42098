use super::*;

fn artifact(manifest: &str, kind: &str, is_test: bool, executable: &str) -> String {
    format!(
        r#"{{"reason":"compiler-artifact","manifest_path":"{manifest}","target":{{"kind":["{kind}"]}},"profile":{{"test":{is_test}}},"executable":{executable}}}"#
    )
}

fn messages(lines: &[String]) -> Result<Programs, String> {
    find(&lines.join("\n"), Path::new("/src"), Scope::Everything)
}

fn whole() -> Vec<String> {
    vec![
        artifact("/src/crates/app/Cargo.toml", "bin", true, r#""/t/deps/kettle-1""#),
        artifact("/src/crates/app/Cargo.toml", "bin", false, r#""/t/kettle""#),
        artifact("/src/measure/bench/Cargo.toml", "bin", false, r#""/t/kettle-bench""#),
        artifact("/src/measure/bench/Cargo.toml", "bin", true, r#""/t/deps/bench-5""#),
        artifact("/src/crates/kernel/Cargo.toml", "lib", false, "null"),
        artifact("/src/crates/kernel/Cargo.toml", "lib", true, r#""/t/deps/kernel-2""#),
        artifact("/src/tests/Cargo.toml", "lib", true, r#""/t/deps/tests-3""#),
        artifact("/src/tests/Cargo.toml", "test", true, r#""/t/deps/suite-4""#),
        artifact("/registry/tests/Cargo.toml", "test", true, r#""/t/deps/foreign""#),
        r#"{"reason":"build-finished","success":true}"#.into(),
    ]
}

fn program(path: &str, folder: &str, is_on_kernels: bool) -> TestProgram {
    let on_kernels: Option<&[&str]> = is_on_kernels.then_some(&[]);
    TestProgram { path: path.into(), folder: folder.into(), on_kernels }
}

#[test]
fn each_program_is_found_by_its_manifest_and_kind() {
    assert_eq!(
        messages(&whole()),
        Ok(Programs {
            kettle: "/t/kettle".into(),
            kettle_bench: Some("/t/kettle-bench".into()),
            units: vec![
                program("/t/deps/kernel-2", "/src/crates/kernel", true),
                program("/t/deps/kettle-1", "/src/crates/app", false),
                program("/t/deps/tests-3", "/src/tests", false),
            ],
            measuring: vec![program("/t/deps/bench-5", "/src/measure/bench", false)],
            suite: vec![program("/t/deps/suite-4", "/src/tests", false)],
        })
    );
}

#[test]
fn the_kernel_crates_tests_run_before_the_suite() {
    let programs = messages(&whole()).unwrap();
    let paths: Vec<_> = programs.for_kernels().iter().map(|program| program.path.clone()).collect();
    assert_eq!(paths, [PathBuf::from("/t/deps/kernel-2"), PathBuf::from("/t/deps/suite-4")]);
}

#[test]
fn a_missing_program_is_an_error() {
    for name in ["kettle", "kettle-bench"] {
        let file = format!(r#""/t/{name}""#);
        let lines: Vec<String> = whole().into_iter().filter(|it| !it.contains(&file)).collect();
        assert_eq!(messages(&lines), Err(format!("cargo built no {name}")));
    }
}

#[test]
fn a_server_is_whole_without_what_measures() {
    let lines: Vec<String> = whole().into_iter().filter(|it| !it.contains("measure/")).collect();
    let programs = find(&lines.join("\n"), Path::new("/src"), Scope::Server).unwrap();
    assert_eq!((programs.kettle_bench, programs.measuring), (None, vec![]));
    assert_eq!(programs.units.len(), 3);
}

/// One that is not named here would be compiled in spite of `--without measure`.
#[test]
fn every_package_that_measures_is_left_out() {
    let left_out: Vec<_> =
        Scope::Server.words().iter().filter(|word| word.starts_with("kettle-")).collect();
    let folders = std::fs::read_dir(checkout::workspace().join("measure")).unwrap();
    let mut names: Vec<_> =
        folders.map(|it| format!("kettle-{}", it.unwrap().file_name().to_str().unwrap())).collect();
    names.sort();
    assert_eq!(left_out, names.iter().collect::<Vec<_>>());
}
