use std::io::Read as _;

use brotli::enc::BrotliCompressCustomAlloc;

use super::*;
use crate::encoder::ENCODER_BYTES_MAX;
use crate::encoder::tests::{Counting, text};

const LENGTHS: [usize; 8] = [256, 1_024, 1_025, 4_096, 65_536, 131_073, 300_000, 2 << 20];

#[test]
fn every_coding_gives_back_what_it_was_given_at_the_borders_of_windows() {
    for bytes in LENGTHS {
        let text = text(bytes);
        let unpacked = |coding| {
            let compressed = compress(coding, &text).unwrap();
            let mut unpacked = Vec::new();
            match coding {
                Coding::Gzip => {
                    flate2::read::GzDecoder::new(&*compressed).read_to_end(&mut unpacked)
                }
                Coding::Br => {
                    brotli::Decompressor::new(&*compressed, 4_096).read_to_end(&mut unpacked)
                }
                Coding::Zstd => zstd::stream::copy_decode(&*compressed, &mut unpacked).map(|()| 0),
            }
            .unwrap();
            unpacked
        };
        for coding in [Coding::Gzip, Coding::Br, Coding::Zstd] {
            assert!(unpacked(coding) == text, "{coding:?} {bytes}");
        }
    }
}

#[test]
fn windows_of_zstd_reach_back_to_the_beginning_of_a_file_up_to_their_bound() {
    for (bytes, bits) in [(0, 10), (1_024, 10), (1_025, 11), (65_536, 16), (usize::MAX, 18)] {
        assert_eq!(zstd_window_bits(bytes), bits, "{bytes}");
    }
}

#[test]
fn an_encoder_holds_no_more_than_is_counted_for_it() {
    for bytes in LENGTHS {
        let text = text(bytes);
        let held = Counting::default();
        let mut input = [0; 4_096];
        let mut output = [0; 4_096];
        let parameters = brotli_parameters(bytes);
        let mut from = &*text;
        let mut to = Vec::new();
        BrotliCompressCustomAlloc(
            &mut from,
            &mut to,
            &mut input,
            &mut output,
            &parameters,
            held.clone(),
        )
        .unwrap();
        let of_brotli = held.most.get();
        let mut encoder = zstd_encoder(bytes).unwrap();
        encoder.compress(&text).unwrap();
        let of_zstd = encoder.context_mut().sizeof();
        assert!(of_brotli.max(of_zstd) <= ENCODER_BYTES_MAX, "{bytes}: {of_brotli} {of_zstd}");
        // And much less for what is read into memory by default.
        let is_usual = bytes <= 65_536;
        assert!(!is_usual || of_brotli.max(of_zstd) <= 3 << 20, "{bytes}: {of_brotli} {of_zstd}");
    }
}
