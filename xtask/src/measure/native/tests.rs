use super::*;

#[test]
fn the_targets_name_figures_there_are() {
    let targets: Targets = toml::from_str(TARGETS).unwrap();
    let figures = include_str!("../../../../crates/bench/src/figure.rs");
    for target in targets.run.iter().chain([&targets.overlay]).flat_map(|run| &run.target) {
        assert!(figures.contains(&format!("\"{}\"", target.figure)), "{}", target.name);
    }
}

#[test]
fn a_row_compares_what_was_measured_in_one_round() {
    let line = |subject: &str, part: &str, round: u64, size: u64, value: f64| -> Value {
        serde_json::json!({"line": "sample", "subject": subject, "part": part, "round": round,
                           "point": {"size": size as f64}, "figures": {"cpu": value}})
    };
    let samples = [
        line("kettle user", "", 0, 1024, 1.0),
        line("nginx user", "", 0, 1024, 2.0),
        line("kettle user", "", 1, 1024, 3.0),
        line("nginx user", "", 1, 1024, 6.0),
        line("kettle user", "", 1, 2048, 30.0),
        line("kettle user", "calls", 1, 1024, 30.0),
        line("kettle terminator user", "", 1, 1024, 30.0),
    ];
    let target: Target = toml::from_str(
        "name = \"n\"\nfigure = \"cpu\"\npoint = { size = 1024 }\ntimes = 4\nunit = \"µs\"\npart = 0.4",
    )
    .unwrap();
    assert_eq!(
        target.row(&samples).unwrap(),
        "| n (µs) | 8.00 (4.00 to 12.00) | 16.0 (8.0 to 24.0) | 0.50 (0.50 to 0.50) | ≤ 0.40 missed |"
    );
    assert!(target.row(&[]).is_err());
}
