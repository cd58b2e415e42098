use super::*;

const BASELINE: &str = r#"{"line":"run"}
{"line":"scenario","name":"work","rules":["Linux 7.3.4."]}
{"line":"sample","subject":"kettle user","point":{"size":1024,"erms":"on"},"round":0,"figures":{"copied_bytes_per_byte":1.9,"context_switches_per_request":3}}
{"line":"sample","subject":"kettle user","point":{"size":1024,"erms":"on"},"round":1,"figures":{"copied_bytes_per_byte":2.1,"context_switches_per_request":3}}"#;

fn measured(copied: f64) -> Vec<Vector> {
    vec![Vector {
        server: "kettle-user".into(),
        bytes: 1024,
        round: 0,
        erms: true,
        figures: [("copied_bytes_per_byte", copied), ("context_switches_per_request", 9.0)].into(),
    }]
}

fn verdict(rule: &str, copied: f64) -> Verdict {
    let baseline = Baseline::read(BASELINE).unwrap();
    compare(&baseline, &[rule.to_owned()], &measured(copied)).unwrap()
}

#[test]
fn a_figure_within_its_limit_is_as_it_was() {
    assert_eq!(verdict("Linux 7.3.4.", 2.04), Verdict::Same(1));
}

#[test]
fn a_figure_beyond_its_limit_is_a_sentence() {
    let Verdict::Changed(sentences) = verdict("Linux 7.3.4.", 2.2) else { panic!() };
    assert!(sentences[0].contains("kettle-user, 1024 B: bytes copied per byte is 2.2000, was 2.0"));
    assert!(complaint(&sentences).contains("--bless"));
}

#[test]
fn another_kernel_is_not_compared() {
    let Verdict::Skipped(why) = verdict("Linux 7.4.1.", 9.0) else { panic!() };
    assert!(why.contains("Linux 7.3.4.") && why.contains("Linux 7.4.1."), "{why}");
}

#[test]
fn a_baseline_of_something_else_is_an_error() {
    let baseline = Baseline::read(BASELINE).unwrap();
    assert!(compare(&baseline, &[], &[]).is_err());
    assert!(compare(&Baseline::default(), &[], &measured(2.0)).is_err());
    assert!(Baseline::read("nonsense").is_err());
}
