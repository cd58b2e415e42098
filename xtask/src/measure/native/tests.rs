use super::*;
use crate::files;

#[test]
fn the_targets_name_figures_there_are() {
    let targets: Targets = toml::from_str(TARGETS).unwrap();
    let figures = include_str!("../../../../measure/bench/src/figure.rs");
    let runs =
        targets.run.iter().chain(&targets.plain).chain(&targets.proxy).chain([&targets.overlay]);
    for target in runs.flat_map(|run| &run.target) {
        assert!(figures.contains(&format!("\"{}\"", target.figure)), "{}", target.name);
    }
}

fn line(subject: &str, part: &str, round: u64, size: u64, value: f64) -> Value {
    serde_json::json!({"line": "sample", "subject": subject, "part": part, "round": round,
                       "point": {"size": size as f64, "traffic": "fresh"}, "figures": {"cpu": value}})
}

#[test]
fn a_row_compares_what_was_measured_in_one_round() {
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
        target.row(&samples, FILES.ours, FILES.others).unwrap(),
        "| n (µs) | 8.00 (4.00 to 12.00) | 16.0 (8.0 to 24.0) | 0.50 (0.50 to 0.50) | ≤ 0.40 missed |"
    );
    assert!(target.row(&[], FILES.ours, FILES.others).is_err());
}

#[test]
fn a_proxy_is_compared_with_the_better_of_two() {
    let others = PROXIES.others;
    let mut samples = Vec::new();
    for round in 0..3 {
        samples.push(line("kettle proxy user", "", round, 1024, 9.0));
        samples.push(line("nginx proxy", "", round, 1024, 12.0));
    }
    let target: Target = toml::from_str(
        "name = \"n\"\nfigure = \"cpu\"\npoint = { size = 1024, traffic = \"fresh\" }\nunit = \"µs\"\npart = 0.8",
    )
    .unwrap();
    let [nine, ten, twelve] = ["9.00 (9.00 to 9.00)", "10.0 (10.0 to 10.0)", "12.0 (12.0 to 12.0)"];
    // A server that is missing is a cell without a figure.
    let row = target.row(&samples, PROXIES.ours, others).unwrap();
    assert_eq!(row, format!("| n (µs) | {nine} | {twelve} |  | 0.75 (0.75 to 0.75) | ≤ 0.80 |"));
    samples.extend((0..3).map(|round| line("haproxy proxy", "", round, 1024, 10.0)));
    let row = target.row(&samples, PROXIES.ours, others).unwrap();
    let judged = "0.90 (0.90 to 0.90) | ≤ 0.80 missed |";
    assert_eq!(row, format!("| n (µs) | {nine} | {twelve} | {ten} | {judged}"));
    let other = target.point["traffic"] == Place::Word("fresh".to_owned());
    assert!(other && target.row(&samples[..0], PROXIES.ours, others).is_err());
}

#[test]
fn the_picture_of_the_readme_shows_what_was_measured() {
    let root = checkout::workspace();
    let read = |path: &str| files::read(root.join(path)).unwrap();
    let (picture, sentence) = picture::drawn(&read("docs/performance.md"));
    assert_eq!(picture, read("docs/performance/beside-nginx.svg"), "--bless draws it anew");
    assert!(read("README.md").contains(&format!("![{sentence}](")), "{sentence}");
    assert!(picture.matches("class=\"share\"").count() >= 5);
    // Two of them end a comment (XML 1.0 §2.5).
    let mut comments = picture.split("<!--").skip(1).map(|it| it.split_once("-->").unwrap().0);
    assert!(comments.all(|comment| !comment.contains("--")), "browsers would not show it");
}

#[test]
fn a_row_of_a_backend_joins_the_picture() {
    let row = "| 1 KiB (µs) | 18.4 (18.1 to 19.0) | 24.0 (23.0 to 25.0) | 23.0 (22.0 to 24.0) | 0.80 (0.75 to 0.85) | ≤ 0.80 |";
    let (picture, sentence) = picture::drawn(row);
    assert_eq!(sentence, "What kettle costs, where nginx is 100 %: 1 KiB of a backend 80 %");
    assert!(picture.contains(">18.4 µs of 23.0 µs<") && picture.contains("width=\"264\""));
    assert!(picture.contains("M478 90H511"), "{picture}");
}
