//! The spread of one figure's rounds at one point, as ministat prints it, and how the subjects differ.

use super::{Table, places, values};
use crate::figure::Figure;
use crate::results::Sample;
use crate::stats::summary::Summary;
use crate::stats::welch::MeanDifference;

/// A row for each subject; `None` where there are several points, or too few rounds to speak of a spread.
pub(super) fn table(samples: &[&Sample], figure: &Figure) -> Option<Table> {
    let point = &samples.first()?.point;
    if samples.iter().any(|sample| sample.point != *point) {
        return None;
    }
    let (subjects, _) = places(samples, figure);
    let row = |subject| Some((subject, Summary::of(&values(samples, figure, subject, point))?));
    let rows: Vec<(&str, Summary)> = subjects.into_iter().filter_map(row).collect();
    if rows.iter().map(|(_, summary)| summary.samples).max()? < ROUNDS_MIN {
        return None;
    }
    // The server that people have today is the measure of the rest.
    let base = rows.iter().find(|(subject, _)| subject.ends_with(" user")).or(rows.first())?;
    let head = ["", "N", "min", "max", "median", "average", "deviation", "against"];
    let mut head: Vec<String> = head.map(str::to_owned).into();
    if let Some(last) = head.last_mut() {
        *last = format!("against {} (95 %)", base.0);
    }
    let mut table = vec![head];
    for (subject, summary) in &rows {
        let Summary { samples, min, max, median, mean, deviation } = summary;
        let against = if subject == &base.0 { String::new() } else { difference(&base.1, summary) };
        let mut row = vec![(*subject).to_owned(), samples.to_string()];
        row.extend([min, max, median, mean, deviation].map(|value| figure.in_words(*value)));
        row.push(against);
        table.push(row);
    }
    Some(table)
}

fn difference(base: &Summary, other: &Summary) -> String {
    let Some(found) = MeanDifference::of(base, other) else { return "–".to_owned() };
    let Some([middle, low, high]) = found.relative.map(|all| all.map(|it| it * 100.0)) else {
        return "–".to_owned();
    };
    let verdict = if found.is_proven() { "" } else { " not proven" };
    format!("{middle:+.1} % ({low:+.1} to {high:+.1}){verdict}")
}

/// With fewer, minimum and maximum say it all.
const ROUNDS_MIN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure;
    use crate::results::{Point, Value};

    fn samples(subject: &str, values: &[f64]) -> Vec<Sample> {
        let of_round = |(round, value): (u32, &f64)| Sample {
            scenario: "nginx-1g".to_owned(),
            subject: subject.to_owned(),
            point: Point::from([("size".to_owned(), Value::Number(1e9))]),
            round,
            figures: [("gigabytes_per_second".to_owned(), *value)].into(),
            ..Sample::default()
        };
        (0..).zip(values).map(of_round).collect()
    }

    fn rows(samples: &[Sample]) -> Option<Table> {
        table(&samples.iter().collect::<Vec<_>>(), figure::find("gigabytes_per_second").unwrap())
    }

    #[test]
    fn subjects_are_held_against_user_space() {
        let mut all = samples("nginx plain", &[3.0; 5]);
        all.extend(samples("nginx user", &[1.0, 1.1, 0.9, 1.0, 1.0]));
        all.extend(samples("nginx kernel-sendfile", &[1.2, 1.3, 1.3, 1.4, 1.3]));
        all.extend(samples("kettle user", &[1.0, 1.2, 0.8, 1.0, 1.1]));
        let table = rows(&all).unwrap();
        assert_eq!(table[0].last().unwrap(), "against nginx user (95 %)");
        assert_eq!(
            table[2][..6],
            ["nginx user", "5", "0.900 GB/s", "1.10 GB/s", "1.00 GB/s", "1.00 GB/s"]
        );
        assert_eq!(table[2].last().unwrap(), "");
        assert!(table[3].last().unwrap().starts_with("+30.0 % (+19."), "{table:?}");
        assert!(table[4].last().unwrap().ends_with("not proven"), "{table:?}");
    }

    #[test]
    fn few_rounds_or_several_points_have_no_spread() {
        assert_eq!(rows(&samples("nginx user", &[1.0; 4])), None);
        let mut all = samples("nginx user", &[1.0; 6]);
        all[0].point.clear();
        assert_eq!(rows(&all), None);
        assert_eq!(rows(&[]), None);
    }
}
