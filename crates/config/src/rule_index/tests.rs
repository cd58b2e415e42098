use proptest::prelude::*;

use super::*;

fn fits(key: PathKey<'_>, path: &str) -> bool {
    match key {
        PathKey::Whole(text) => path == text,
        PathKey::Ends { begins, ends } => path.starts_with(begins) && path.ends_with(ends),
    }
}

fn key() -> impl Strategy<Value = (bool, String, String)> {
    (any::<bool>(), "[/aé]{0,4}", "[/aé]{0,4}")
}

proptest! {
    /// Against the plain list: none that fits is left out, and they come in order.
    #[test]
    fn candidates_are_all_that_may_fit_in_order(
        keys in prop::collection::vec(key(), 0..40),
        path in "[/aé]{0,9}",
    ) {
        let keys: Vec<PathKey<'_>> = keys
            .iter()
            .map(|(is_whole, begins, ends)| match is_whole {
                true => PathKey::Whole(begins),
                false => PathKey::Ends { begins, ends },
            })
            .collect();
        let index = RuleIndex::new(keys.iter().copied());
        let candidates: Vec<usize> = index.candidates(&path).collect();
        prop_assert!(candidates.is_sorted_by(|one, other| one < other), "{candidates:?}");
        let expected: Vec<usize> =
            (0..keys.len()).filter(|number| fits(keys[*number], &path)).collect();
        let found: Vec<usize> =
            candidates.into_iter().filter(|number| fits(keys[*number], &path)).collect();
        prop_assert_eq!(&found, &expected);
        let first = index.first(&path, |number| fits(keys[number], &path));
        prop_assert_eq!(first, expected.first().copied());
    }

    /// The number of rules against which one path has to be held never exceeds what is said of the index.
    #[test]
    fn no_path_has_more_candidates_than_the_largest_crowd(
        keys in prop::collection::vec(("[/a]{0,4}", "[/a]{0,4}"), 9..40),
        path in "[/a]{0,9}",
    ) {
        let ends = |(begins, ends)| PathKey::Ends { begins, ends };
        let index = RuleIndex::new(keys.iter().map(|(one, other)| ends((one.as_str(), other.as_str()))));
        let crowd = index.largest_crowd();
        prop_assert!(crowd.is_sorted());
        prop_assert!(index.candidates(&path).count() <= crowd.len());
    }
}

/// The plain list has ten thousand for each path.
#[test]
fn one_of_ten_thousand_has_as_few_candidates_as_one_of_ten() {
    let texts: Vec<String> = (0..10_000).map(|number| format!("/r{number:05}/")).collect();
    for count in [10, 10_000] {
        let texts = &texts[..count];
        let last = texts.last().unwrap();
        let indexes = [
            (RuleIndex::new(texts.iter().map(|it| PathKey::Whole(it))), last.clone()),
            (RuleIndex::new(texts.iter().map(|it| PathKey::begins(it))), format!("{last}a")),
            (
                RuleIndex::new(texts.iter().map(|ends| PathKey::Ends { begins: "", ends })),
                format!("/a{last}"),
            ),
            // All begin alike, and all end alike: what differs decides.
            (
                RuleIndex::new(texts.iter().map(|ends| PathKey::Ends { begins: "/", ends })),
                format!("/a{last}"),
            ),
            (
                RuleIndex::new(texts.iter().map(|begins| PathKey::Ends { begins, ends: "/" })),
                format!("{last}a/"),
            ),
        ];
        for (index, path) in indexes {
            let candidates: Vec<usize> = index.candidates(&path).collect();
            assert_eq!(candidates, [count - 1], "{path}");
            assert_eq!(index.candidates("/other").count(), 0);
            assert_eq!(index.candidates("").count(), 0);
            assert!(index.largest_crowd().len() <= 1);
        }
    }
}

#[test]
fn rules_without_beginning_and_end_are_candidates_of_every_path() {
    let others = (0..10).map(|_| PathKey::ANY).chain([PathKey::begins("/a"), PathKey::Whole("/b")]);
    let index = RuleIndex::new(others);
    assert_eq!(index.candidates("/c").count(), 10);
    assert_eq!(index.candidates("/ab").last(), Some(10));
    assert_eq!(index.candidates("/b").last(), Some(11));
    assert_eq!(index.largest_crowd(), (0..11).collect::<Vec<_>>());
}

#[test]
fn beginnings_within_each_other_are_all_candidates() {
    let texts: Vec<String> = (0..200).map(|length| format!("/{}", "a".repeat(length))).collect();
    let index = RuleIndex::new(texts.iter().rev().map(|text| PathKey::begins(text)));
    assert_eq!(index.candidates(&format!("/{}b", "a".repeat(3))).count(), 4);
    assert_eq!(index.candidates(&format!("/{}", "a".repeat(300))).count(), 200);
    assert_eq!(index.candidates("/b").collect::<Vec<_>>(), [199]);
    assert_eq!(index.largest_crowd().len(), 200);
}
