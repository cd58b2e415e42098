//! Draws results: one page that needs nothing beside it, and each chart as a file of its own.

mod axis;
mod bars;
pub(crate) mod canvas;
mod card;
mod chart;
mod charts;
mod conclusion;
mod dots;
mod gathered;
mod head;
mod legend;
mod limits;
mod markup;
pub(crate) mod plot;
mod same;
pub(crate) mod sampling;
mod scale;
mod section;
mod speech;
mod style;
mod table;
mod tabled;
mod theme;
mod trust;
mod verdict;

pub use card::Card;

use chart::Chart;
use gathered::{Gathered, ScenarioResults};
use markup::Markup;
use verdict::PageVerdict;

use crate::number;
use crate::results::read::Results;

/// A page of everything in these results files; those that count work stay apart from those that count time. It links each chart
/// in the folder beside it that holds them as files, if there is one.
pub fn page(files: &[Results], charts_folder: Option<&str>) -> String {
    let scatter = same::scatter(files);
    let merged = same::merged(files);
    let files: Vec<Gathered> = merged.iter().map(Gathered::of).collect();
    let sections = drawn(&files);
    let verdict = PageVerdict::of(&files);
    let trust = trust::assess(&files, &verdict, scatter);
    let mut page = Markup::new();
    page.raw("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"/>");
    page.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>");
    // The page says itself that it loads nothing.
    page.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src 'unsafe-inline'\"/>");
    let title = head::title(&files, &verdict);
    page.element("title", &[], &title);
    // The text that is shown where somebody shares a link to the page.
    let described = format!("{}. How far to trust this: {}.", head::place(&files), trust.level);
    page.empty("meta", &[("name", "description"), ("content", &described)]);
    page.empty("meta", &[("property", "og:title"), ("content", &title)]);
    page.empty("meta", &[("property", "og:description"), ("content", &described)]);
    theme::page_style(&mut page);
    page.raw("</head><body>");
    head::write(&mut page, &title, &files, &sections, (&verdict, &trust));
    page.raw("<main>");
    for section in &sections {
        section::write(&mut page, section, charts_folder);
    }
    limits::write(&mut page, &files);
    page.raw("</main>");
    head::write_foot(&mut page, &files);
    page.raw("</body></html>\n");
    page.into_string()
}

/// Each chart as a file of its own: its name without `.svg`, and its text.
pub fn charts(files: &[Results]) -> Vec<(String, String)> {
    let merged = same::merged(files);
    let files: Vec<Gathered> = merged.iter().map(Gathered::of).collect();
    let sections = drawn(&files);
    let charts = sections.iter().flat_map(|section| {
        let caption = head::caption(section.file);
        let drawn = section.charts.iter().filter(|chart| !chart.panels.is_empty());
        drawn.map(move |chart| (chart.name.clone(), chart.to_svg(&caption)))
    });
    charts.collect()
}

/// The answer alone, to be shown to others; nothing if kettle was measured beside nobody.
pub fn card(files: &[Results]) -> Option<Card> {
    let scatter = same::scatter(files);
    let merged = same::merged(files);
    let files: Vec<Gathered> = merged.iter().map(Gathered::of).collect();
    let verdict = PageVerdict::of(&files);
    let trust = trust::assess(&files, &verdict, scatter);
    card::draw(&files, &verdict, &trust)
}

struct Section<'a> {
    file: &'a Gathered<'a>,
    scenario: &'a ScenarioResults<'a>,
    /// Its address within the page.
    id: String,
    charts: Vec<Chart>,
}

fn drawn<'a>(files: &'a [Gathered<'a>]) -> Vec<Section<'a>> {
    let mut sections: Vec<Section> = Vec::new();
    for file in files {
        for scenario in file
            .scenarios
            .iter()
            .filter(|scenario| !scenario.samples.is_empty() || !scenario.absent.is_empty())
        {
            let plain = slug(scenario.name);
            let count =
                sections.iter().filter(|section| section.scenario.name == scenario.name).count();
            let id = if count == 0 { plain } else { format!("{plain}-{}", count + 1) };
            let mut charts = charts::charts(scenario);
            for chart in charts.iter_mut().filter(|_| count > 0) {
                chart.name = format!("{}-{}", chart.name, count + 1);
            }
            sections.push(Section { file, scenario, id, charts });
        }
    }
    sections
}

/// A name as part of an address or a file name.
fn slug(name: &str) -> String {
    let lower = name.chars().map(|letter| letter.to_ascii_lowercase());
    lower.map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}
