//! Chunked bodies: the same end and the same data however the bytes arrive.

#![no_main]

use kettle_http::RequestError;
use kettle_http::h1::chunked::ChunkedReader;
use libfuzzer_sys::fuzz_target;

/// Reads a body: returns true if it has ended, the bytes that it took, and those of them that were data.
fn read<'d>(pieces: impl Iterator<Item = &'d [u8]>) -> Result<(bool, usize, u64), RequestError> {
    let mut reader = ChunkedReader::new();
    let mut total = 0;
    for piece in pieces {
        let taken = reader.consume(piece)?;
        assert!(taken == piece.len() || (taken < piece.len() && reader.is_done()));
        total += taken;
    }
    Ok((reader.is_done(), total, reader.data_bytes()))
}

fuzz_target!(|data: &[u8]| {
    let Some((cut, body)) = data.split_first() else {
        return;
    };
    let whole = read(std::iter::once(body));
    assert_eq!(read(body.chunks(1)), whole);
    assert_eq!(read(body.chunks(usize::from(*cut).max(1))), whole);
    if let Ok((is_done, total, data_bytes)) = whole {
        assert!(is_done || total == body.len());
        assert!(data_bytes <= total as u64);
        assert!(!is_done || body[..total].ends_with(b"\r\n"));
    }
});
