//! The table that goes with a drawing, made from what is drawn, so that the two cannot differ.

use super::axis::Axis;
use super::bars::Bars;
use super::chart::{Chart, Picture};
use super::plot::{Panel, Plot, PlotPoint};
use super::table::Table;

/// The numbers of a chart: its own table, or one of everything drawn.
pub fn table(chart: &Chart) -> Table {
    if !chart.table.head.is_empty() {
        return chart.table.clone();
    }
    let has_labels = chart.panels.iter().any(|part| !part.label.is_empty());
    let mut whole = Table::default();
    for part in &chart.panels {
        let table = match &part.picture {
            Picture::Plot(plot) => of_plot(plot),
            Picture::Bars(bars) => of_bars(bars),
            // Dots come with a table of their own.
            Picture::Dots(_) => continue,
        };
        whole.merge(table, has_labels.then(|| part.title()));
    }
    whole
}

fn of_plot(plot: &Plot) -> Table {
    let several = plot.panels.len() > 1;
    let columns = || plot.panels.iter().flat_map(|p| p.curves.iter().map(move |curve| (p, curve)));
    let head = columns().map(|(panel, curve)| match several {
        true => format!("{}: {}", panel.y.label, curve.name),
        false => curve.name.clone(),
    });
    let mut table = Table::new(1, [plot.x.label.clone()].into_iter().chain(head));
    let mut places: Vec<f64> =
        columns().flat_map(|(_, curve)| curve.points.iter().map(|p| p.x)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    for x in places {
        let named = plot.x.named.iter().find(|(value, _)| *value == x);
        let first = named.map_or_else(|| plot.x.exactly(x), |(_, name)| name.clone());
        let cells = columns().map(|(panel, curve)| {
            let point = curve.points.iter().find(|point| point.x == x);
            point.map_or_else(|| "–".to_owned(), |point| cell(panel, point))
        });
        table.push([first].into_iter().chain(cells));
    }
    table
}

fn cell(panel: &Panel, point: &PlotPoint) -> String {
    with_interval(&panel.y, point.middle, (point.low, point.high))
}

fn with_interval(axis: &Axis, middle: f64, (low, high): (f64, f64)) -> String {
    let value = axis.exactly(middle);
    let low = axis.exactly(low);
    let high = axis.exactly(high);
    if low == value && high == value {
        return value;
    }
    format!("{value} ({low} – {high})")
}

fn of_bars(bars: &Bars) -> Table {
    let has_groups = bars.groups.iter().any(|group| !group.label.is_empty());
    let words = if has_groups { vec![String::new(), String::new()] } else { vec![String::new()] };
    let parts =
        if bars.parts.is_empty() { vec![bars.axis.label.clone()] } else { bars.parts.clone() };
    let mut table = Table::new(words.len(), words.into_iter().chain(parts.iter().cloned()));
    for group in &bars.groups {
        for bar in &group.bars {
            let mut row = if has_groups { vec![group.label.clone()] } else { Vec::new() };
            row.push(bar.label.clone());
            let mut before = 0.0;
            for end in bar.ends.iter().take(parts.len()) {
                // Parts that are more of the same are told whole, parts of a sum one by one.
                let value = if bars.value_is_first { *end } else { end - before };
                before = *end;
                let is_whole = bar.ends.len() == 1;
                row.push(if is_whole {
                    with_interval(&bars.axis, value, bar.interval)
                } else {
                    bars.axis.exactly(value)
                });
            }
            row.resize(table.head.len(), "–".to_owned());
            table.push(row);
        }
    }
    table
}

impl Table {
    /// Adds the rows of another table, with a label before each; columns are matched by their heads.
    fn merge(&mut self, other: Table, label: Option<String>) {
        if self.head.is_empty() {
            self.head = label.iter().map(|_| String::new()).collect();
            self.words = other.words + self.head.len();
        }
        let lead = usize::from(label.is_some());
        let mut used = vec![false; self.head.len()];
        let mut places = Vec::new();
        for head in &other.head {
            let known = self.head.iter().enumerate().skip(lead);
            let found = known.filter(|(at, have)| *have == head && used.get(*at) == Some(&false));
            let place = found.map(|(at, _)| at).next().unwrap_or_else(|| {
                self.head.push(head.clone());
                used.push(false);
                self.head.len() - 1
            });
            if let Some(used) = used.get_mut(place) {
                *used = true;
            }
            places.push(place);
        }
        for row in other.rows {
            let mut cells = vec!["–".to_owned(); self.head.len()];
            if let (Some(cell), Some(label)) = (cells.first_mut(), &label) {
                label.clone_into(cell);
            }
            for (place, text) in places.iter().zip(row) {
                if let Some(cell) = cells.get_mut(*place) {
                    *cell = text;
                }
            }
            self.rows.push(cells);
        }
        let width = self.head.len();
        for row in &mut self.rows {
            row.resize(width, "–".to_owned());
        }
    }
}
