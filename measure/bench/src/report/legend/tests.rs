use super::*;

#[test]
fn names_do_not_overlap_and_stay_inside() {
    let placed = apart(&[50.0, 51.0, 52.0, 199.0, 200.0], 0.0, 200.0);
    for pair in placed.windows(2) {
        assert!(pair[1] - pair[0] >= APART - 1e-9, "{placed:?}");
    }
    assert!(placed.iter().all(|y| (0.0..=200.0).contains(y)), "{placed:?}");
}

#[test]
fn a_name_with_room_stays_where_its_curve_ends() {
    assert_eq!(apart(&[40.0, 140.0], 0.0, 200.0), [40.0, 140.0]);
}
