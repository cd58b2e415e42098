use super::*;

#[test]
fn places_are_told_in_words() {
    let latency = Axis::new(PERCENTILE, "", ScaleKind::Log10);
    for (of, text) in [
        (2.0, "at the 50th percentile"),
        (2.24, "at the 55th percentile"),
        (2.57, "at the 61st percentile"),
        (100.0, "at the 99th percentile"),
        (1000.0, "at the 99.9th percentile"),
        (2818.0, "at the 99.96th percentile"),
    ] {
        assert_eq!(latency.place(of), text);
    }
    assert_eq!(Axis::of_point("size").place(65536.0), "for 64\u{a0}KiB");
    assert_eq!(Axis::of_point("rate").place(1600.0), "at 1,600/s");
    assert_eq!(Axis::of_point("connections").place(1000.0), "at connections 1,000");
}
