use std::path::Path;

use super::link_to;

#[test]
fn charts_beside_or_below_the_page_are_linked_and_others_are_not() {
    let link = |folder, page| link_to(Path::new(folder), Path::new(page)).map(str::to_owned);
    assert_eq!(link("charts", "page.html"), Some("charts".to_owned()));
    assert_eq!(link("run/pictures/svg", "run/page.html"), Some("pictures/svg".to_owned()));
    assert_eq!(link("elsewhere", "run/page.html"), None);
}
