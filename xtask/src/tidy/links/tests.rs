//! Orphans and broken links are caught.

use super::*;

fn rules(tree: &[(&str, &str)]) -> Vec<(String, &'static str)> {
    let tree = Tree::of(tree);
    let (workspace, mut violations) = Workspace::scan(&tree);
    check(&tree, &workspace, &mut violations);
    violations.into_iter().map(|violation| (violation.path, violation.rule)).collect()
}

#[test]
fn a_page_nobody_links_to_is_caught() {
    let tree = [("README.md", "see docs/ktls.md"), ("docs/ktls.md", "[me](ktls.md)")];
    assert_eq!(rules(&tree), [("docs/ktls.md".to_owned(), "orphan_page")]);
}

#[test]
fn pages_that_link_only_to_each_other_are_caught() {
    let tree = [
        ("README.md", ""),
        ("docs/doctor.md", "[kernels](kernels.md)"),
        ("docs/kernels.md", "[doctor](doctor.md)"),
    ];
    assert_eq!(rules(&tree).len(), 2);
}

#[test]
fn a_page_linked_from_another_page_passes() {
    let tree = [
        ("README.md", "see [kernel TLS](docs/ktls.md#homes)"),
        ("docs/ktls.md", "## Homes\nchosen in [0001](decisions/0001.md)"),
        ("docs/decisions/0001.md", "# Top\nback to [the page](../ktls.md), [top](#top)"),
    ];
    assert_eq!(rules(&tree), []);
}

#[test]
fn a_link_to_nothing_is_caught() {
    let tree = [("README.md", "[gone](docs/gone.md)")];
    assert_eq!(rules(&tree), [("README.md".to_owned(), "broken_link")]);
}

#[test]
fn links_in_code_and_to_other_sites_are_left_alone() {
    let text = "[site](https://example.org/x)\n```\n[code](nowhere.md)\n```\n";
    assert_eq!(rules(&[("README.md", text)]), []);
}

#[test]
fn a_link_to_a_place_that_is_not_there_is_caught() {
    let page = ("docs/a.md", "# A page\n");
    for (link, is_broken) in
        [("docs/a.md#a-page", false), ("docs/a.md#gone", true), ("#gone", true)]
    {
        let text = format!("[page](docs/a.md) [place]({link})");
        assert_eq!(rules(&[("README.md", &text), page]).len(), usize::from(is_broken), "{link}");
    }
}

#[test]
fn an_address_in_a_message_leads_to_a_page() {
    let page = ("docs/a.md", "# A page\n");
    for (end, is_broken) in
        [("a.md#a-page.", false), ("a.md`", false), ("b.md", true), ("a.md#b", true)]
    {
        let message = format!("see {PUBLISHED}docs/{end}");
        let tree = [("README.md", "[page](docs/a.md)"), page, ("crates/a/src/a.rs", &message)];
        assert_eq!(rules(&tree).len(), usize::from(is_broken), "{end}");
    }
}
