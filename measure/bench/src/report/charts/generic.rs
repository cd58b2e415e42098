//! A scenario this report knows no charts for: every figure of every point in one table.

use std::collections::BTreeSet;

use crate::report::axis::Axis;
use crate::report::gathered::ScenarioResults;
use crate::report::sampling::{Samples, describe};
use crate::report::table::Table;

/// All medians, a row for each subject at each point.
pub fn table(scenario: &ScenarioResults) -> Table {
    let samples = &scenario.samples;
    let names = |of: &dyn Fn(&crate::results::Sample) -> Vec<String>| -> Vec<String> {
        samples.iter().flat_map(of).collect::<BTreeSet<String>>().into_iter().collect()
    };
    let axes = names(&|sample| sample.point.keys().cloned().collect());
    let figures = names(&|sample| sample.figures.keys().cloned().collect());
    let label = |axis: &String| Axis::of_point(axis).label;
    let captions = figures.iter().map(|figure| Axis::of_figure(figure).label);
    let head = ["Subject".to_owned()].into_iter().chain(axes.iter().map(label)).chain(captions);
    let mut table = Table::new(1 + axes.len(), head.chain(["Rounds".to_owned()]));
    for subject in samples.subjects() {
        let own = samples.subject(subject);
        for (_, here) in own.facets(&[]) {
            let Some(first) = here.iter().next() else { continue };
            let point = axes
                .iter()
                .map(|axis| first.point.get(axis).map_or(String::new(), |it| describe(axis, it)));
            let values = figures.iter().map(|figure| value(&here, figure));
            let row = [subject.to_owned()].into_iter().chain(point).chain(values);
            table.push(row.chain([here.len().to_string()]));
        }
    }
    table
}

fn value(samples: &Samples, figure: &str) -> String {
    let axis = Axis::of_figure(figure);
    samples.estimate(figure).map_or("–".to_owned(), |estimate| axis.exactly(estimate.median))
}
