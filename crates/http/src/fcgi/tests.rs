use proptest::prelude::*;

use super::*;

/// The response, what is for the log, and the ends of requests.
type Decoded = (Vec<u8>, Vec<u8>, Vec<RequestEnd>);

/// Decodes bytes that arrive in pieces of this length.
fn decoded(bytes: &[u8], step: usize) -> Result<Decoded, RecordError> {
    let mut decoder = RecordDecoder::default();
    let mut all = Decoded::default();
    for mut input in bytes.chunks(step.max(1)) {
        while let Some(piece) = decoder.next(&mut input)? {
            match piece {
                RecordPiece::Output(data) => all.0.extend_from_slice(data),
                RecordPiece::Errors(data) => all.1.extend_from_slice(data),
                RecordPiece::End(end) => all.2.push(end),
            }
        }
        assert!(input.is_empty(), "all that is here is used");
    }
    Ok(all)
}

fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    let mut record = vec![1, kind, 0, 1, length[0], length[1], padding, 0];
    record.extend_from_slice(content);
    record.extend(std::iter::repeat_n(b'p', padding.into()));
    record
}

/// Parameters as an application reads them.
fn pairs(mut bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pairs = Vec::new();
    let length = |bytes: &mut &[u8]| {
        let (first, rest) = bytes.split_first().unwrap();
        if *first < 128 {
            *bytes = rest;
            return usize::from(*first);
        }
        let (long, rest) = bytes.split_at(4);
        *bytes = rest;
        u32::from_be_bytes([long[0] & 0x7f, long[1], long[2], long[3]]) as usize
    };
    while !bytes.is_empty() {
        let name_bytes = length(&mut bytes);
        let value_bytes = length(&mut bytes);
        let (name, rest) = bytes.split_at(name_bytes);
        let (value, rest) = rest.split_at(value_bytes);
        pairs.push((name.to_vec(), value.to_vec()));
        bytes = rest;
    }
    pairs
}

/// The contents of records of one kind, and how many there were.
fn contents(mut bytes: &[u8], kind: u8) -> (Vec<u8>, usize) {
    let mut all = Vec::new();
    let mut records = 0;
    while let Some((header, rest)) = bytes.split_at_checked(8) {
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let (content, rest) = rest.split_at(length + usize::from(header[6]));
        if header[1] == kind {
            all.extend_from_slice(content);
            records += 1;
        }
        bytes = rest;
    }
    (all, records)
}

#[test]
fn a_request_is_as_the_specification_has_it() {
    let mut out = Vec::new();
    let mut parameters_of = Vec::new();
    begin(&mut out, true);
    assert!(pair(&mut parameters_of, b"A", b"bc"));
    parameters(&mut out, &parameters_of);
    input(&mut out, b"xyz");
    input(&mut out, b"");
    end_input(&mut out);
    let expected: [&[u8]; 7] = [
        b"\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\0",
        b"\x01\x04\0\x01\0\x05\0\0",
        b"\x01\x02Abc",
        b"\x01\x04\0\x01\0\0\0\0",
        b"\x01\x05\0\x01\0\x03\0\0",
        b"xyz",
        b"\x01\x05\0\x01\0\0\0\0",
    ];
    assert_eq!(out, expected.concat());
    let mut closing = Vec::new();
    begin(&mut closing, false);
    assert_eq!(closing[10], 0, "the application closes the connection");
}

#[test]
fn a_value_that_could_mean_something_else_is_no_parameter() {
    let mut out = b"before".to_vec();
    for value in ["a\0b", "a\nb", "a\rb", "\u{7f}", "\u{1b}[2J"] {
        assert!(!pair(&mut out, b"X", value.as_bytes()), "{value:?}");
    }
    for name in ["", "A B", "A\0", "A\n"] {
        assert!(!pair(&mut out, name.as_bytes(), b"v"), "{name:?}");
    }
    assert!(!pair(&mut out, b"X", &[b'v'; 0xfff8]), "longer than a record");
    assert_eq!(out, b"before");
    assert!(pair(&mut out, b"X", "a\tb\u{e4}".as_bytes()));
}

#[test]
fn a_body_is_cut_into_records_that_can_hold_it() {
    for (bytes, records) in [(0, 0), (1, 1), (0xfff8, 1), (0xfff9, 2), (300_000, 5)] {
        let data: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        let mut out = Vec::new();
        input(&mut out, &data);
        assert_eq!(contents(&out, 5), (data, records), "{bytes}");
    }
}

#[test]
fn a_request_is_the_same_where_it_is_made_in_place() {
    for (value_bytes, fits) in [(0, true), (1_000, true), (65_000, true), (65_516, false)] {
        for (keeps, has_body) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut all = Vec::new();
            assert!(
                pair(&mut all, b"NAME", &vec![b'v'; value_bytes]) && pair(&mut all, b"A", b"b")
            );
            let mut expected = Vec::new();
            begin(&mut expected, keeps);
            parameters(&mut expected, &all);
            let ends_at = expected.len() - 8;
            if !has_body {
                end_input(&mut expected);
            }
            let room = [0; ROOM_BYTES];
            let mut out = [&room[..], &all].concat();
            let before = out.clone();
            match enclose(&mut out, keeps, has_body) {
                Some(bytes) => {
                    assert!(out == expected && fits, "{value_bytes}");
                    assert_eq!(usize::from(bytes), expected.len() - ends_at);
                }
                None => assert!(out == before && !fits, "{value_bytes}"),
            }
        }
    }
    assert_eq!(enclose(&mut vec![0; ROOM_BYTES], false, false), None, "no parameters, no request");
}

/// PHP reads each record by itself.
#[test]
fn no_record_ends_within_a_parameter() {
    for value_bytes in (1..200).chain([1_000, 30_000, 65_500, 65_520, 65_526]) {
        let mut all = Vec::new();
        let value = vec![b'v'; value_bytes];
        let sent = (0..5).filter(|_| pair(&mut all, b"NAME", &value)).count();
        assert!(sent == 5 || value_bytes > 65_500, "{value_bytes}");
        while all.len() < 200_000 && pair(&mut all, b"MORE", b"1") {}
        let mut out = Vec::new();
        parameters(&mut out, &all);
        let mut read = Vec::new();
        let mut rest = &out[..];
        while let Some((header, behind)) = rest.split_at_checked(8) {
            let bytes = usize::from(u16::from_be_bytes([header[4], header[5]]));
            read.extend(pairs(&behind[..bytes]));
            rest = &behind[bytes..];
        }
        assert_eq!(read, pairs(&all), "{value_bytes}");
    }
}

#[test]
fn what_an_application_sends_is_taken_apart() {
    let sent = [
        record(7, b"a warning", 3),
        record(6, b"Status: 200\r\n\r\n", 1),
        record(6, b"body", 0),
        record(6, b"", 8),
        record(7, b"", 0),
        record(3, &[0, 0, 0, 9, 0, 0, 0, 0], 255),
    ]
    .concat();
    for step in 1..=sent.len() {
        let (output, errors, ends) = decoded(&sent, step).unwrap();
        assert_eq!(output, b"Status: 200\r\n\r\nbody");
        assert_eq!(errors, b"a warning");
        assert_eq!(ends, [RequestEnd::Complete]);
    }
    let (_, _, ends) = decoded(&sent[..sent.len() - 1], 1000).unwrap();
    assert!(ends.is_empty(), "its padding belongs to the end");
}

#[test]
fn ends_say_how_a_request_ended() {
    let end = |status| decoded(&record(3, &[0, 0, 0, 0, status, 0, 0, 0], 0), 7);
    for (status, expected) in [
        (0, RequestEnd::Complete),
        (1, RequestEnd::Overloaded),
        (2, RequestEnd::Overloaded),
        (3, RequestEnd::UnknownRole),
    ] {
        assert_eq!(end(status).unwrap().2, [expected]);
    }
    assert_eq!(end(4).unwrap_err(), RecordError::Status);
}

#[test]
fn what_no_application_sends_is_refused() {
    let changed = |at: usize, byte: u8| {
        let mut sent = record(6, b"x", 0);
        sent[at] = byte;
        decoded(&sent, 1000)
    };
    for (at, byte, error) in [
        (0, 0, RecordError::Version),
        (0, b'H', RecordError::Version),
        (1, 1, RecordError::Kind),
        (1, 5, RecordError::Kind),
        (1, 10, RecordError::Kind),
        (1, 0, RecordError::Kind),
        (2, 1, RecordError::Request),
        (3, 0, RecordError::Request),
        (3, 2, RecordError::Request),
        (1, 3, RecordError::Length),
    ] {
        assert_eq!(changed(at, byte), Err(error), "{at} {byte}");
    }
    assert_eq!(decoded(&record(3, &[0; 9], 0), 3), Err(RecordError::Length));
    assert_eq!(decoded(b"HTTP/1.1 400 Bad Request\r\n\r\n", 9), Err(RecordError::Version));
}

#[test]
fn the_state_between_two_pieces_is_small() {
    assert!(size_of::<RecordDecoder>() <= 32, "{}", size_of::<RecordDecoder>());
}

proptest! {
    #[test]
    fn applications_read_the_parameters_that_were_written(
        all in prop::collection::vec(("[A-Z_]{1,200}", "[ -~]{0,300}"), 0..20),
    ) {
        let mut written = Vec::new();
        for (name, value) in &all {
            prop_assert!(pair(&mut written, name.as_bytes(), value.as_bytes()));
        }
        let expected: Vec<_> =
            all.into_iter().map(|(name, value)| (name.into_bytes(), value.into_bytes())).collect();
        prop_assert_eq!(pairs(&written), expected);
    }

    #[test]
    fn how_bytes_arrive_changes_nothing(
        records in prop::collection::vec((0_u8..12, prop::collection::vec(any::<u8>(), 0..40), 0_u8..9), 0..8),
        noise in prop::collection::vec(any::<u8>(), 0..20),
        step in 1_usize..50,
    ) {
        let mut sent: Vec<u8> =
            records.iter().flat_map(|(kind, content, padding)| record(*kind, content, *padding)).collect();
        sent.extend(noise);
        prop_assert_eq!(decoded(&sent, step), decoded(&sent, usize::MAX));
    }
}
