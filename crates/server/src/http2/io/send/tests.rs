use super::*;

/// The numbers of the streams that are told.
fn settle(written: &mut Written, tells_all: bool) -> Vec<u32> {
    let mut told = Vec::new();
    written.settle(tells_all, |number| told.push(number));
    told
}

#[test]
fn a_stream_is_sent_when_the_kernel_has_the_record_of_its_last_frame() {
    let mut written = Written::default();
    let [one, three] = [(1, &Rc::default()), (3, &Rc::<StreamProgress>::default())];
    // A head and a frame are sealed together, and the end of one stream with the beginning of the other.
    written.note(one, 129, 100, false);
    written.sealed(129, 151);
    written.note(one, 60, 50, true);
    written.note(three, 90, 20, false);
    written.sealed(90, 112);
    written.note(three, 29, 20, true);
    written.sealed(29, 51);
    for (queued_bytes, expected, told) in [
        (300, (0, 0), vec![]),
        (164, (0, 0), vec![]),
        (163, (100, 0), vec![]),
        (52, (100, 0), vec![]),
        (51, (150, 20), vec![1]),
        (0, (150, 40), vec![3]),
    ] {
        written.sent(queued_bytes);
        assert_eq!(settle(&mut written, false), told, "{queued_bytes}");
        assert_eq!((one.1.sent_bytes.get(), three.1.sent_bytes.get()), expected, "{queued_bytes}");
    }
    assert!(one.1.is_taken() && three.1.is_taken() && three.1.is_drained());
}

#[test]
fn what_the_kernel_takes_is_sent_byte_by_byte() {
    let mut written = Written::default();
    let one = (1, &Rc::<StreamProgress>::default());
    written.note(one, 109, 100, true);
    for (taken_bytes, is_sent) in [(108, false), (1, true)] {
        written.taken(taken_bytes);
        settle(&mut written, false);
        assert_eq!(one.1.is_taken(), is_sent);
    }
}

#[test]
fn behind_a_client_s_end_each_piece_is_told() {
    let mut written = Written::default();
    let one = (1, &Rc::<StreamProgress>::default());
    written.note(one, 109, 100, false);
    written.sealed(109, 131);
    assert!(!one.1.is_drained());
    written.sent(0);
    assert_eq!(settle(&mut written, true), [1]);
    assert!(one.1.is_drained() && !one.1.is_taken());
}
