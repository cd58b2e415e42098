//! The answer as a card: whole, honest, and nothing without an answer.

use std::path::Path;

use kettle_bench::report;
use kettle_bench::results::{Clock, read};

use crate::answer::Made;

#[test]
fn a_card_has_the_finding_its_doubts_and_how_to_repeat_it() {
    let made = Made::on("no: no module", Clock::Time).small("kettle user", &[47.0, 46.0, 48.0]);
    let card = report::card(&[made.small("nginx user", &[100.0; 3]).results()]).unwrap();
    for text in [&card.svg, &card.markdown] {
        for said in ["0.47", "processor time", "nginx", "0.46 to 0.48", "How far to trust this"] {
            assert!(text.contains(said), "no {said:?} in {text}");
        }
    }
    assert!(card.markdown.starts_with("**kettle needs 0.47 of nginx's processor time"));
    assert!(card.markdown.contains("Kernel TLS is unproven here"));
    assert!(card.markdown.contains("    kettle bench run web-sizes "));
    assert!(card.svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    assert!(card.svg.contains("viewBox=\"0 0 1200 630\""));
}

#[test]
fn without_an_answer_there_is_no_card() {
    let alone = Made::on("yes", Clock::Time).small("kettle auto", &[1.0; 3]).results();
    assert_eq!(report::card(&[alone]), None);
    assert_eq!(report::card(&[]), None);
}

/// The picture in README is made of the results that lie beside it, and of nothing else.
#[test]
fn the_answer_that_is_shown_is_that_of_its_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let files = ["large-file", "comparisons", "work"]
        .map(|name| read::read(&folder.join(name).with_extension("jsonl")).unwrap());
    let card = report::card(&files).unwrap();
    for (name, made) in [("answer.md", card.markdown), ("answer.svg", card.svg)] {
        let shown = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(shown == made, "{name}: make it again as docs/results/README.md says");
    }
}
