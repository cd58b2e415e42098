//! The first answer of a page, and its limits: rules that a reader's trust rests on, each with results made for it.

use kettle_bench::report;
use kettle_bench::results::read::Results;
use kettle_bench::results::{Clock, Line, Sample, Value};

use crate::{page, read, recorded};

/// Results on a machine whose kernel carries TLS, or not.
pub struct Made(Vec<Line>);

/// A sample: scenario, subject, round, axes and figures.
type Figures<'a> = &'a [(&'a str, f64)];

impl Made {
    pub fn on(kernel_tls: &str, clock: Clock) -> Self {
        let mut line = recorded::run(clock);
        if let Line::Run(run) = &mut line {
            run.machine.kernel_tls = kernel_tls.to_owned();
        }
        Self(vec![line])
    }

    pub fn add(
        mut self,
        (scenario, part): (&str, &str),
        subject: &str,
        point: Figures,
        rounds: &[Figures],
    ) -> Self {
        for (round, figures) in (0..).zip(rounds) {
            self.0.push(Line::Sample(Sample {
                scenario: scenario.to_owned(),
                subject: subject.to_owned(),
                part: part.to_owned(),
                point: point
                    .iter()
                    .map(|(axis, at)| ((*axis).to_owned(), Value::Number(*at)))
                    .collect(),
                round,
                figures: figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
                ..Sample::default()
            }));
        }
        self
    }

    /// Processor time of requests for 1 KiB, a round each.
    pub fn small(self, subject: &str, rounds: &[f64]) -> Self {
        let figures: Vec<[(&str, f64); 1]> =
            rounds.iter().map(|cost| [("cpu_ns_per_request", *cost)]).collect();
        let rounds: Vec<Figures> = figures.iter().map(|figures| figures.as_slice()).collect();
        self.add(("web-sizes", ""), subject, &[("size", 1024.0)], &rounds)
    }

    pub fn results(self) -> Results {
        read(self.0)
    }

    fn page(self) -> String {
        report::page(&[self.results()], None)
    }
}

fn time() -> Made {
    Made::on("yes", Clock::Time)
}

/// The rows of the verdict, without markup.
fn verdict(page: &str) -> Vec<String> {
    let (_, table) = page.split_once("<table class=\"verdict\">").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    table.split("<tr>").skip(1).map(words).collect()
}

/// The caption and the table of a chart, without markup.
fn figure(page: &str, name: &str) -> String {
    let (_, figure) =
        page.split_once(&format!("id=\"{name}\"")).unwrap_or_else(|| panic!("no {name}"));
    words(figure.split_once("</figure>").unwrap().0)
}

fn words(markup: &str) -> String {
    let texts = markup.split('<').filter_map(|piece| piece.split_once('>'));
    let texts: Vec<&str> = texts.map(|(_, text)| text).filter(|text| !text.is_empty()).collect();
    let text = texts.join(" ").replace("&#39;", "'");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_answer_comes_first_then_charts_then_limits_and_provenance() {
    let page = page();
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("no {part}"));
    let order = [
        "<h1",
        "class=\"trust\"",
        "class=\"verdict\"",
        "<svg",
        "id=\"limits\"",
        "class=\"facts\"",
        "<pre>kettle bench",
    ];
    let places: Vec<usize> = order.iter().map(|part| at(part)).collect();
    assert!(places[..6].is_sorted(), "{places:?}");
    let machine = at("Processors online");
    assert!(machine > at("id=\"limits\""), "the machine before the limits");
}

#[test]
fn every_question_has_a_row_with_a_ratio_and_its_interval() {
    let rows = verdict(&page());
    for (question, within) in [
        ("Handshake", "0."),
        ("Small body", " to "),
        ("Large body", " to "),
        ("Memory", " to "),
        ("Streaming", " to "),
    ] {
        let row = rows
            .iter()
            .find(|row| row.starts_with(question))
            .unwrap_or_else(|| panic!("no {question}"));
        assert!(row.contains('×') && row.contains(within), "{row}");
    }
}

#[test]
fn what_was_not_measured_is_named_with_the_command_that_measures_it() {
    let page = time().small("kettle auto", &[1.0; 3]).small("nginx user", &[2.0; 3]).page();
    let said = words(&page);
    assert!(said.contains("Not measured here: handshake (kettle bench run tps-ramp)"), "{said}");
    assert!(said.contains("streaming (kettle bench run streaming)"), "{said}");
}

#[test]
fn a_decided_answer_is_the_title_and_one_that_speaks_against_us_too() {
    let better =
        time().small("kettle auto", &[47.0, 46.0, 48.0]).small("nginx user", &[100.0; 3]).page();
    let title = "kettle needs 0.47 of nginx&#39;s processor time for a 1\u{a0}KiB file";
    assert!(better.contains(&format!("<title>{title}</title>")), "{better:.900}");
    assert!(better.contains(&format!("<h1>{title}</h1>")));
    assert!(better.contains(&format!("property=\"og:title\" content=\"{title}\"")));
    let worse = time().small("kettle auto", &[150.0; 3]).small("nginx user", &[100.0; 3]).page();
    assert!(
        worse.contains("<title>kettle needs 1.50 times nginx&#39;s processor time"),
        "{worse:.900}"
    );
}

#[test]
fn an_interval_that_holds_one_is_undecided_and_no_title() {
    let page = time()
        .small("kettle auto", &[90.0, 100.0, 110.0])
        .small("nginx user", &[95.0, 104.0, 105.0])
        .page();
    let rows = verdict(&page);
    assert!(rows[1].contains(": undecided"), "{rows:?}");
    assert!(
        page.contains("<h1>What is asked here is not decided yet between kettle and nginx</h1>"),
        "{page:.900}"
    );
    assert!(figure(&page, "web-sizes-servers").contains("no difference can be told"));
}

#[test]
fn two_rounds_decide_nothing_and_have_no_plus_or_minus() {
    let page = time()
        .small("kettle auto", &[47.0, 46.0])
        .small("nginx user", &[100.0, 101.0])
        .add(
            ("nginx-1g", ""),
            "kettle user",
            &[],
            &[&[("cpu_seconds_per_gib", 0.5)], &[("cpu_seconds_per_gib", 0.51)]],
        )
        .add(
            ("nginx-1g", ""),
            "kettle kernel-sendfile",
            &[],
            &[&[("cpu_seconds_per_gib", 0.4)], &[("cpu_seconds_per_gib", 0.41)]],
        )
        .page();
    assert!(verdict(&page)[1].contains("undecided: 2 rounds"), "{:?}", verdict(&page));
    assert!(!page.contains('±'), "a ± from two rounds");
    assert!(figure(&page, "nginx-1g-cpu").contains("too few rounds"));
}

#[test]
fn a_tie_has_no_winner() {
    let page = time().small("kettle auto", &[50.0; 3]).small("nginx user", &[50.0; 3]).page();
    assert!(verdict(&page)[1].contains("no difference"), "{:?}", verdict(&page));
    let said = figure(&page, "web-sizes-cpu");
    assert!(said.contains("No difference: 50.0 ns with every server."), "{said}");
    assert!(!words(&page).contains("lowest"));
}

#[test]
fn nothing_is_drawn_of_zeros() {
    let round: Figures = &[("stalls_per_1000", 0.0), ("cpu_user_percent", 20.0)];
    let stalls = &[round; 3];
    let page = time()
        .add(("streaming", ""), "kettle auto", &[("throughput", 1.0)], stalls)
        .add(("streaming", ""), "nginx user", &[("throughput", 1.0)], stalls)
        .page();
    assert!(!page.contains("id=\"streaming-stalls\""));
    assert!(words(&page).contains("How many objects come late? None, with every server."));
    assert!(page.contains("id=\"streaming-cpu\""));
}

#[test]
fn counts_need_no_rounds() {
    let aes: &[Figures] = &[&[("aes_blocks_per_byte", 0.0626), ("copied_bytes_per_byte", 2.02)]];
    let none: &[Figures] = &[&[("aes_blocks_per_byte", 0.0626), ("copied_bytes_per_byte", 0.001)]];
    let page = Made::on("available", Clock::Work)
        .add(("work", ""), "kettle user", &[("size", 1024.0)], aes)
        .add(("work", ""), "nginx kernel-sendfile", &[("size", 1024.0)], none)
        .page();
    let said = figure(&page, "work-aes");
    assert!(said.contains("No difference: 0.0626 with every server."), "{said}");
    let said = figure(&page, "work-copied");
    assert!(said.contains("Least with nginx kernel-sendfile ("), "{said}");
    assert!(!words(&page).contains("round to be sure") && !words(&page).contains("undecided"));
    assert!(words(&page).contains("Kernel TLS is unproven here as time"));
}

#[test]
fn auto_is_no_second_subject_where_the_kernel_carries_no_tls() {
    let made = |kernel| {
        let made = Made::on(kernel, Clock::Time).small("kettle user", &[70.0, 71.0]);
        made.small("kettle auto", &[89.0, 90.0]).small("nginx user", &[200.0, 201.0, 202.0])
    };
    let without = made("no: the tls module is not loaded").page();
    assert!(!without.contains("kettle auto"), "one code, two subjects");
    assert!(words(&without).contains("same code measured twice came out up to 27 % apart"));
    assert!(words(&without).contains("Kernel TLS is unproven here"));
    assert!(made("yes").page().contains("kettle auto"));
    assert!(!words(&made("yes").page()).contains("unproven"));
}

#[test]
fn a_rate_of_the_grid_is_no_measure_of_the_servers() {
    let mut made = time();
    for subject in ["kettle auto", "nginx user", "haproxy user"] {
        made = made.add(
            ("tps-ramp", "summary"),
            subject,
            &[("k", 1.0)],
            &[&[("tps_mean_100ms", 1600.0), ("tps_max", 1600.0)]],
        );
        for rate in [800.0, 1600.0, 3200.0] {
            made = made.add(
                ("tps-ramp", "step"),
                subject,
                &[("k", 1.0), ("rate", rate)],
                &[&[("mean_us", rate)]],
            );
        }
    }
    let said = figure(&made.page(), "tps-ramp-points");
    assert!(
        said.contains("no difference can be told between kettle auto, nginx user and haproxy user"),
        "{said}"
    );
    assert!(said.contains("1,600/s is a step of the ramp and not a measure of the servers; the next step was 3,200/s"), "{said}");
}

#[test]
fn a_resumed_handshake_dearer_than_a_full_one_is_explained() {
    let costs = |resumed| {
        [("cpu_us_per_full_transaction", 182.0), ("cpu_us_per_resumed_transaction", resumed)]
    };
    let page = |resumed| {
        time().add(("tps-ramp", "summary"), "kettle auto", &[("k", 4.0)], &[&costs(resumed)]).page()
    };
    let said = figure(&page(196.0), "tps-ramp-resumed");
    assert!(
        said.contains("Dearer than a full handshake with kettle auto (196 µs against 182 µs)"),
        "{said}"
    );
    assert!(!figure(&page(90.0), "tps-ramp-resumed").contains("Dearer"));
}

#[test]
fn one_round_told_with_every_mix_is_still_one_round() {
    let mut made = time();
    for (subject, cost) in [("kettle auto", 182.0), ("nginx user", 411.0)] {
        for k in [1.0, 4.0, 8.0] {
            made = made.add(
                ("tps-ramp", "summary"),
                subject,
                &[("k", k)],
                &[&[("cpu_us_per_full_transaction", cost)]],
            );
        }
    }
    let page = made.page();
    assert!(figure(&page, "tps-ramp-full").contains("but with 1 round that is undecided"));
    assert!(verdict(&page)[1].contains("undecided: 1 round"), "{:?}", verdict(&page));
}

#[test]
fn words_stand_where_codes_stood() {
    let page = page();
    let said = words(&page);
    for code in ["k = ", "fell silent", "percentile is"] {
        assert!(!said.contains(code), "{code}");
    }
    assert!(said.contains("every handshake full"));
    assert!(said.contains("The time within which 99 of 100 requests are answered goes from"));
    assert!(said.contains("at the 55th percentile"), "no percentile in words");
    assert!(!page.contains(", 2.24: "));
}

#[test]
fn findings_of_work_are_a_table() {
    let page = page();
    let (_, figure) = page.split_once("id=\"work-instructions\"").unwrap();
    let (caption, _) = figure.split_once("</figcaption>").unwrap();
    assert!(caption.contains("<table>"), "{caption}");
    assert!(words(caption).contains("cheapest fixed path"), "{caption}");
    assert!(words(caption).contains("instructions are not time"));
}
