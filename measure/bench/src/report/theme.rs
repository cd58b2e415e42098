//! The colours of both themes, and the style sheets of the page and of a chart that stands alone.
//!
//! Programs have the hues of Okabe and Ito's palette, which people with any colour vision can tell apart; dark ones are lighter.

use super::markup::Markup;

/// A colour: its name in the style sheets, and its value in the light and in the dark theme.
type Colour = (&'static str, &'static str, &'static str);

const COLOURS: &[Colour] = &[
    ("paper", "#fdfcfa", "#15171b"),
    ("panel", "#f5f3ee", "#1d2026"),
    ("ink", "#1a1c20", "#eceae5"),
    ("soft", "#5b606b", "#a2a8b4"),
    ("rule", "#e2dfd7", "#30343c"),
    ("grid", "#ebe8e1", "#282c34"),
    ("link", "#0b5fa5", "#7cbcf5"),
    ("warn", "#945800", "#f0b44c"),
    ("warn-panel", "#fff6e3", "#2a2314"),
    ("bad", "#b3123b", "#ff7d9a"),
    ("kettle", "#c8430a", "#ff8a4c"),
    ("nginx", "#00805c", "#35c79b"),
    ("haproxy", "#0068a8", "#5fb4f0"),
    ("hitch", "#a8508c", "#e08fc6"),
    ("stunnel", "#7a6a14", "#cdb945"),
    ("other", "#5d6675", "#9aa5b5"),
    ("neutral", "#8b8f98", "#858b97"),
];

const PAGE: &str = include_str!("page.css");
const CHART: &str = include_str!("chart.css");

pub fn page_style(page: &mut Markup) {
    page.raw("<style>:root{color-scheme:light dark;");
    for (name, light, _) in COLOURS {
        define(page, name, light);
    }
    page.raw("}@media(prefers-color-scheme:dark){:root{");
    for (name, _, dark) in COLOURS {
        define(page, name, dark);
    }
    page.raw("}}");
    page.raw(PAGE);
    page.raw(CHART);
    page.raw("</style>");
}

fn define(page: &mut Markup, name: &'static str, value: &'static str) {
    page.raw("--");
    page.raw(name);
    page.raw(":");
    page.raw(value);
    page.raw(";");
}

/// The style of a chart that stands alone. Colours are written out: many programs that show SVG know no variables.
pub fn chart_style(chart: &mut Markup) {
    chart.raw("<style>");
    write_out(chart, |(_, light, _)| light);
    chart.raw("@media(prefers-color-scheme:dark){");
    write_out(chart, |(_, _, dark)| dark);
    chart.raw("}</style>");
}

fn write_out(chart: &mut Markup, value: impl Fn(&Colour) -> &'static str) {
    let mut rest = CHART;
    while let Some((before, after)) = rest.split_once("var(--") {
        chart.raw(before);
        let (name, after) = after.split_once(')').unwrap_or((after, ""));
        let colour = COLOURS.iter().find(|(known, ..)| *known == name);
        chart.raw(colour.map_or("currentColor", &value));
        rest = after;
    }
    chart.raw(rest);
}

#[cfg(test)]
mod tests;
