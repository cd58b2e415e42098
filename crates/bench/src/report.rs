//! Draws results: one page that needs nothing beside it, and each chart as a file of its own.

mod axis;
mod bars;
mod canvas;
mod chart;
mod dots;
mod finding;
mod gathered;
mod head;
mod legend;
mod limits;
mod look;
mod markup;
mod number;
mod plot;
mod sampling;
mod scale;
mod scenes;
mod section;
mod table;
mod tabled;
mod theme;

use chart::Chart;
use gathered::{Gathered, Scene};
use markup::Markup;

use crate::results::read::Results;

/// How a page is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The heading; else one is made from what was measured.
    pub title: Option<String>,
    /// The folder beside the page that holds each chart as a file, if it is to be linked.
    pub charts_folder: Option<String>,
}

/// A page of everything in these results files; those that count work stay apart from those that count time.
#[must_use]
pub fn page(files: &[Results], options: &Options) -> String {
    let files: Vec<Gathered> = files.iter().map(Gathered::of).collect();
    let sections = drawn(&files);
    let mut page = Markup::new();
    page.raw("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"/>");
    page.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>");
    // The page says itself that it loads nothing.
    page.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src 'unsafe-inline'\"/>");
    let title = options.title.clone().unwrap_or_else(|| head::title(&files));
    page.element("title", &[], &title);
    theme::page_style(&mut page);
    page.raw("</head><body>");
    head::write(&mut page, &title, &files, &sections);
    page.raw("<main>");
    for section in &sections {
        section::write(&mut page, section, options);
    }
    page.raw("</main>");
    head::write_foot(&mut page, &files);
    page.raw("</body></html>\n");
    page.into_string()
}

/// Each chart as a file of its own: its name without `.svg`, and its text.
#[must_use]
pub fn charts(files: &[Results]) -> Vec<(String, String)> {
    let files: Vec<Gathered> = files.iter().map(Gathered::of).collect();
    let sections = drawn(&files);
    let charts = sections.iter().flat_map(|section| {
        let caption = head::caption(section.file);
        section.charts.iter().map(move |chart| (chart.name.clone(), chart.to_svg(&caption)))
    });
    charts.collect()
}

/// A scenario of a file with its charts.
struct Section<'a> {
    file: &'a Gathered<'a>,
    scene: &'a Scene<'a>,
    /// Its address within the page.
    id: String,
    charts: Vec<Chart>,
}

fn drawn<'a>(files: &'a [Gathered<'a>]) -> Vec<Section<'a>> {
    let mut sections: Vec<Section> = Vec::new();
    for file in files {
        for scene in
            file.scenes.iter().filter(|scene| !scene.samples.is_empty() || !scene.absent.is_empty())
        {
            let plain = slug(scene.name);
            let count = sections.iter().filter(|section| section.scene.name == scene.name).count();
            let id = if count == 0 { plain } else { format!("{plain}-{}", count + 1) };
            let mut charts = scenes::charts(scene);
            for chart in charts.iter_mut().filter(|_| count > 0) {
                chart.name = format!("{}-{}", chart.name, count + 1);
            }
            sections.push(Section { file, scene, id, charts });
        }
    }
    sections
}

/// A name as part of an address or a file name.
fn slug(name: &str) -> String {
    let lower = name.chars().map(|letter| letter.to_ascii_lowercase());
    lower.map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}
