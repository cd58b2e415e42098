use super::*;
use crate::results::SubjectLine;

fn outcome(ours: &[f64], theirs: &[f64]) -> Outcome {
    cell_of(ours, theirs).unwrap().outcome
}

#[test]
fn the_interval_decides_and_too_few_rounds_never() {
    assert_eq!(outcome(&[1.0, 1.1, 1.2], &[2.0, 2.1, 2.2]), Outcome::Less);
    assert_eq!(outcome(&[2.0, 2.1, 2.2], &[1.0, 1.1, 1.2]), Outcome::More);
    assert_eq!(outcome(&[1.0, 2.0, 3.0], &[1.5, 2.5, 2.0]), Outcome::Undecided);
    assert_eq!(outcome(&[1.0, 1.0], &[9.0, 9.0]), Outcome::TooFew);
    assert_eq!(outcome(&[3.0; 3], &[3.0; 3]), Outcome::Same);
    assert_eq!(outcome(&[3.0], &[3.0]), Outcome::Same);
    assert_eq!(cell_of(&[0.0], &[1.0]), None);
    assert_eq!(cell_of(&[], &[1.0]), None);
}

#[test]
fn ratios_are_ours_to_theirs() {
    let cell = cell_of(&[50.0; 3], &[100.0; 3]).unwrap();
    assert_eq!((cell.ratio.middle, cell.values), (0.5, (50.0, 100.0)));
}

#[test]
fn every_question_is_spoken_of_and_its_sources_measure_one_figure_each() {
    for question in QUESTIONS {
        assert!(!question.phrase().thing.is_empty(), "{}", question.name);
        for source in question.sources {
            let figure = crate::figure::find(source.figure);
            assert!(figure.is_some_and(|figure| figure.better == Better::Lower), "{source:?}");
        }
    }
}

#[test]
fn versions_of_a_peer_are_told_once_each_with_their_library() {
    let line = |name: &str, version: &str| SubjectLine {
        scenario: "web-sizes".to_owned(),
        name: name.to_owned(),
        point: Default::default(),
        version: version.to_owned(),
        ..SubjectLine::default()
    };
    let lines = [
        line("nginx user", "nginx 1.22.1, OpenSSL 3.0.19"),
        line("nginx kernel-sendfile", "nginx 1.22.1, OpenSSL 3.0.19"),
        line(
            "nginx user",
            "nginx/1.30.6, OpenSSL 3.6.5 29 Sep 2026 (Library: OpenSSL 3.6.5 29 Sep 2026)",
        ),
        line("haproxy", "haproxy 2.6.12-1+deb12u4"),
        line("hitch", "unknown"),
    ];
    let scenario = ScenarioResults { subjects: lines.iter().collect(), ..Default::default() };
    let of = |peer: &str| versions(peer, &[&scenario]);
    assert_eq!(of("nginx"), "1.22.1, OpenSSL 3.0.19; 1.30.6, OpenSSL 3.6.5");
    assert_eq!(of("haproxy"), "2.6.12");
    assert_eq!((of("hitch"), of("stunnel")), (String::new(), String::new()));
}
