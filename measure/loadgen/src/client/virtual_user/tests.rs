use super::*;

#[test]
fn first_sessions_are_spread_evenly_and_never_empty() {
    for per_session in [1, 4, 8, 80] {
        assert_eq!(first_length(0, per_session), per_session);
        let users = 20 * per_session;
        let lengths: Vec<u32> = (0..users).map(|it| first_length(it, per_session)).collect();
        for length in 1..=per_session {
            let count = lengths.iter().filter(|it| **it == length).count();
            assert!((18..=22).contains(&count), "{count} of {users} have {length}");
        }
        assert_eq!(lengths.iter().max(), Some(&per_session));
    }
}
