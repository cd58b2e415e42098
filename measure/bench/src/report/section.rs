//! One scenario on the page: its charts, their tables, the rules it went by and the servers as they were started.

use super::canvas::{Drawing, Room};
use super::chart::{Chart, Part, write_svg};
use super::markup::{Attributes, Markup};
use super::{Section, charts, tabled};

pub fn write(page: &mut Markup, section: &Section, charts_folder: Option<&str>) {
    let scenario = section.scenario;
    page.open("section", &[("class", "scenario"), ("id", &section.id)]);
    page.open("p", &[("class", "eyebrow")]);
    page.text(scenario.name);
    if scenario.is_work {
        page.element("span", &[("class", "badge")], "instructions, not time");
    }
    if !scenario.is_complete {
        page.element("span", &[("class", "badge")], "not finished");
    }
    page.close("p");
    let question = charts::question(scenario);
    page.element("h2", &[], if question.is_empty() { scenario.name } else { question });
    page.raw("<div class=\"charts\">");
    for chart in &section.charts {
        write_chart(page, chart, charts_folder);
    }
    page.raw("</div>");
    if section.charts.is_empty() && !scenario.samples.is_empty() {
        charts::generic::table(scenario).write(page);
    }
    write_rules(page, section);
    write_servers(page, section);
    page.close("section");
}

fn write_chart(page: &mut Markup, chart: &Chart, charts_folder: Option<&str>) {
    if chart.panels.is_empty() {
        page.raw("<p class=\"undrawn\"><strong>");
        page.text(&chart.question);
        page.raw("</strong> ");
        page.text(&chart.conclusion);
        page.raw("</p>");
        return;
    }
    let class = if chart.is_wide { "full" } else { "half" };
    page.open("figure", &[("class", class), ("id", &chart.name)]);
    page.raw("<figcaption>");
    page.element("h3", &[], &chart.question);
    if !chart.conclusion.is_empty() {
        page.element("p", &[("class", "finding")], &chart.conclusion);
    }
    if !chart.answers.rows.is_empty() {
        chart.answers.write(page);
    }
    if !chart.note.is_empty() {
        page.element("p", &[("class", "note")], &chart.note);
    }
    page.raw("</figcaption>");
    match chart.panels.as_slice() {
        [part] if part.label.is_empty() || !chart.is_wide => write_single(page, chart, part),
        parts => write_parts(page, chart, parts),
    }
    page.raw("<div class=\"foot\"><details><summary>Numbers</summary>");
    tabled::table(chart).write(page);
    page.raw("</details>");
    if let Some(folder) = charts_folder {
        let address = format!("{}/{}.svg", folder.trim_end_matches('/'), chart.name);
        page.element("a", &[("href", &address)], "SVG");
    }
    page.raw("</div>");
    page.close("figure");
}

fn write_single(page: &mut Markup, chart: &Chart, part: &Part) {
    if !part.label.is_empty() {
        page.element("h4", &[], &part.label);
    }
    let room = if chart.is_wide { Room::Full } else { Room::Half };
    write_drawing(page, "chart wide", part, room, &chart.question);
    write_drawing(page, "chart narrow", part, Room::Narrow, &chart.question);
}

fn write_parts(page: &mut Markup, chart: &Chart, parts: &[Part]) {
    let groups: Vec<&[Part]> = parts.chunk_by(|a, b| a.group == b.group).collect();
    for (index, group) in groups.iter().enumerate() {
        let heading = group.first().map(|part| part.group.as_str()).unwrap_or_default();
        if heading.is_empty() {
            write_group(page, chart, group);
            continue;
        }
        // A long sweep is not scrolled past: what comes later opens when asked for.
        let open: Attributes = if index < GROUPS_OPEN { &[("open", ""), CLASS] } else { &[CLASS] };
        page.open("details", open);
        page.element("summary", &[], heading);
        write_group(page, chart, group);
        page.close("details");
    }
}

fn write_group(page: &mut Markup, chart: &Chart, parts: &[Part]) {
    let (class, room) =
        if parts.len() <= 2 { ("parts two", Room::Half) } else { ("parts", Room::Narrow) };
    page.open("div", &[("class", class)]);
    for part in parts {
        page.raw("<div class=\"part\">");
        page.element("h4", &[], &part.label);
        let label = format!("{} {}", chart.question, part.title());
        if room == Room::Half {
            write_drawing(page, "chart wide", part, room, &label);
            write_drawing(page, "chart narrow", part, Room::Narrow, &label);
        } else {
            write_drawing(page, "chart small", part, room, &label);
        }
        page.raw("</div>");
    }
    page.raw("</div>");
}

fn write_drawing(page: &mut Markup, class: &str, part: &Part, room: Room, label: &str) {
    let Drawing { width, height, content } = part.picture.draw(room);
    write_svg(page, &[("class", class)], (width, height), label, &content);
}

fn write_rules(page: &mut Markup, section: &Section) {
    if section.scenario.rules.is_empty() {
        return;
    }
    page.raw("<details><summary>What was the same for all</summary><ul class=\"rules\">");
    for rule in &section.scenario.rules {
        page.element("li", &[], rule);
    }
    page.raw("</ul></details>");
}

fn write_servers(page: &mut Markup, section: &Section) {
    if section.scenario.subjects.is_empty() {
        return;
    }
    page.raw("<details><summary>The servers, their versions and whole configurations</summary>");
    for subject in &section.scenario.subjects {
        let point: Vec<String> = subject
            .point
            .iter()
            .map(|(axis, value)| super::sampling::describe(axis, value))
            .collect();
        page.open("h4", &[]);
        page.text(&subject.name);
        if !point.is_empty() {
            page.text(&format!(" ({})", point.join(", ")));
        }
        page.close("h4");
        page.element("p", &[("class", "note")], &subject.version);
        page.element("pre", &[], &format!("{}\n\n{}", subject.command.join(" "), subject.config));
    }
    page.raw("</details>");
}

/// The number of groups of drawings that are open at first.
const GROUPS_OPEN: usize = 2;
const CLASS: (&str, &str) = ("class", "group");
