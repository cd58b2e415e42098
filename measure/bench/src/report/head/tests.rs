use super::*;

#[test]
fn processors_lose_their_marks() {
    assert_eq!(plain("Intel(R) Xeon(R) CPU @ 2.50GHz"), "Intel Xeon @ 2.50GHz");
}
