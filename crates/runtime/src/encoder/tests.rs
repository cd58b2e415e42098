use std::cell::Cell;
use std::io::Read as _;
use std::rc::Rc;
use std::task::Waker;

use brotli::enc::BrotliAlloc;
use brotli::enc::writer::CompressorWriterCustomAlloc;
use brotli::{Allocator, SliceWrapper, SliceWrapperMut};
use proptest::prelude::*;
use zstd::zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

use super::*;

const CODINGS: [Coding; 3] = [Coding::Gzip, Coding::Br, Coding::Zstd];

/// Text of some variety: each line has a number that the line before does not lead to.
pub fn text(bytes: usize) -> Vec<u8> {
    let line = |at: u32| {
        format!("{:08x} the quick brown fox {}\n", at.wrapping_mul(2_654_435_761), at % 97)
    };
    let mut text: Vec<u8> = (0..).flat_map(|at| line(at).into_bytes()).take(bytes).collect();
    text.truncate(bytes);
    text
}

/// As far as it can be decoded: a stream without an end yields what was flushed.
fn decoded(coding: Coding, coded: &[u8]) -> Vec<u8> {
    let mut reader: Box<dyn io::Read + '_> = match coding {
        Coding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(coded)),
        Coding::Br => Box::new(brotli::Decompressor::new(coded, 4_096)),
        Coding::Zstd => Box::new(zstd::Decoder::new(coded).unwrap()),
    };
    let mut plain = Vec::new();
    let mut piece = [0; 4_096];
    while let Ok(bytes @ 1..) = reader.read(&mut piece) {
        plain.extend_from_slice(&piece[..bytes]);
    }
    plain
}

fn is_whole(coding: Coding, coded: &[u8]) -> bool {
    let mut plain = Vec::new();
    match coding {
        Coding::Gzip => flate2::read::GzDecoder::new(coded).read_to_end(&mut plain).is_ok(),
        Coding::Br => brotli::Decompressor::new(coded, 4_096).read_to_end(&mut plain).is_ok(),
        Coding::Zstd => zstd::stream::copy_decode(coded, &mut plain).is_ok(),
    }
}

fn permits(bytes: usize) -> EncoderPermits {
    EncoderPermits::new(1, bytes)
}

/// A step of a source.
#[derive(Clone, Debug)]
enum Step {
    Piece(usize),
    Nothing,
}

/// Returns the outcome of asking an encoding until it is over or fails: the coded bytes, and how much could be decoded at each
/// wait.
fn run(coding: Coding, plain: &[u8], steps: &[Step], cut: bool) -> (Vec<u8>, bool) {
    let mut encoding = Encoding::new(permits(1 << 24).encoder(coding, None).unwrap());
    let mut context = Context::from_waker(Waker::noop());
    let mut coded = Vec::new();
    let mut given = 0;
    let mut at = 0;
    loop {
        let mut is_source_waiting = false;
        let next = encoding.poll_next(&mut context, |_| {
            let step = steps.get(at).cloned();
            match step {
                Some(Step::Piece(bytes)) => {
                    at += 1;
                    let end = (given + bytes).min(plain.len());
                    let piece = Bytes::copy_from_slice(&plain[given..end]);
                    given = end;
                    Poll::Ready(Ok(Some(piece)))
                }
                Some(Step::Nothing) => {
                    is_source_waiting = true;
                    Poll::Pending
                }
                None if cut => Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof))),
                None => Poll::Ready(Ok(None)),
            }
        });
        match next {
            Poll::Ready(Ok(Some(piece))) => coded.extend_from_slice(&piece),
            Poll::Ready(Ok(None)) => return (coded, true),
            Poll::Ready(Err(_)) => return (coded, false),
            Poll::Pending if is_source_waiting => {
                assert!(
                    decoded(coding, &coded) == plain[..given],
                    "{coding:?}: all that came is there"
                );
                at += 1;
            }
            // Its turn was over.
            Poll::Pending => {}
        }
    }
}

fn steps(bytes: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..=bytes).prop_map(Step::Piece),
        2 => (0_usize..9).prop_map(Step::Piece),
        2 => Just(Step::Nothing),
    ];
    proptest::collection::vec(step, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However the source cuts it, and whenever it waits.
    #[test]
    fn any_split_decodes_to_the_same_bytes_and_nothing_is_held_back(mut steps in steps(70_000)) {
        let plain = text(150_000);
        steps.push(Step::Piece(plain.len()));
        for coding in CODINGS {
            let (coded, is_over) = run(coding, &plain, &steps, false);
            prop_assert!(is_over && is_whole(coding, &coded));
            prop_assert!(decoded(coding, &coded) == plain, "{:?}", coding);
        }
    }

    #[test]
    fn a_body_that_is_cut_has_no_coded_end(steps in steps(40_000)) {
        let plain = text(50_000);
        for coding in CODINGS {
            let (coded, is_over) = run(coding, &plain, &steps, true);
            prop_assert!(!is_over && !is_whole(coding, &coded), "{:?}", coding);
        }
    }
}

#[test]
fn a_body_of_nothing_has_an_end() {
    for coding in CODINGS {
        for steps in [&[][..], &[Step::Nothing, Step::Piece(0)]] {
            let (coded, _) = run(coding, b"", steps, false);
            assert!(is_whole(coding, &coded) && decoded(coding, &coded).is_empty(), "{coding:?}");
        }
    }
}

#[test]
fn no_turn_codes_more_than_a_step() {
    let plain = Bytes::from(text(10 * STEP_BYTES));
    for coding in CODINGS {
        let mut encoding = Encoding::new(permits(1 << 24).encoder(coding, None).unwrap());
        let mut context = Context::from_waker(Waker::noop());
        let mut given = false;
        let mut turns = 0;
        loop {
            let next = encoding.poll_next(&mut context, |_| {
                let piece = (!std::mem::replace(&mut given, true)).then(|| plain.clone());
                Poll::Ready(Ok::<_, io::Error>(piece))
            });
            match next {
                Poll::Pending => turns += 1,
                Poll::Ready(Ok(None)) => break,
                Poll::Ready(it) => drop(it.unwrap()),
            }
        }
        assert_eq!(turns, 10, "{coding:?}");
    }
}

#[test]
fn memory_is_for_so_many_and_is_free_at_the_end_of_a_body_or_with_it() {
    for coding in CODINGS {
        let permits = permits(2 * stream_bytes_max(coding) + UNIT_BYTES);
        let encoder = || permits.encoder(coding, Some(5));
        let mut first = encoder().unwrap();
        let second = encoder().unwrap();
        assert!(encoder().is_none(), "{coding:?}");
        drop(second);
        let second = encoder().unwrap();
        first.encode(b"hello").unwrap();
        assert!(encoder().is_none(), "{coding:?}");
        assert_eq!(decoded(coding, &first.finish().unwrap()), b"hello");
        assert!(encoder().is_some(), "{coding:?}");
        drop((first, second));
    }
}

/// Adds up what an encoder holds, and the most that it held.
#[derive(Clone, Default)]
pub struct Counting {
    now: Rc<Cell<usize>>,
    pub most: Rc<Cell<usize>>,
}

#[derive(Default)]
pub struct Counted<T>(Vec<T>);

impl<T> SliceWrapper<T> for Counted<T> {
    fn slice(&self) -> &[T] {
        &self.0
    }
}

impl<T> SliceWrapperMut<T> for Counted<T> {
    fn slice_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Clone + Default> Allocator<T> for Counting {
    type AllocatedMemory = Counted<T>;

    fn alloc_cell(&mut self, items: usize) -> Counted<T> {
        self.now.set(self.now.get() + items * size_of::<T>());
        self.most.set(self.most.get().max(self.now.get()));
        Counted(vec![T::default(); items])
    }

    fn free_cell(&mut self, cell: Counted<T>) {
        self.now.set(self.now.get() - size_of_val(&*cell.0));
    }
}

impl BrotliAlloc for Counting {}

#[test]
fn an_encoder_holds_no_more_than_is_counted_for_it() {
    let plain = text(1 << 20);
    let held = Counting::default();
    let buffer = Counted(vec![0; BROTLI_BUFFER_BYTES]);
    let quality = BROTLI_QUALITY as u32;
    let window = BROTLI_WINDOW_BITS as u32;
    let mut encoder =
        CompressorWriterCustomAlloc::new(Vec::new(), buffer, held.clone(), quality, window);
    plain.chunks(STEP_BYTES).for_each(|piece| encoder.write_all(piece).unwrap());
    encoder.flush().unwrap();
    let bytes = held.most.get() + BROTLI_BUFFER_BYTES;
    assert!(bytes <= BROTLI_BYTES_MAX && bytes > BROTLI_BYTES_MAX / 3, "{bytes}");
    let mut context = CCtx::create();
    context.set_parameter(CParameter::CompressionLevel(ZSTD_LEVEL)).unwrap();
    context.set_parameter(CParameter::WindowLog(ZSTD_WINDOW_BITS)).unwrap();
    let mut coded = vec![0; plain.len()];
    let mut output = OutBuffer::around(&mut coded[..]);
    context.compress_stream(&mut output, &mut InBuffer::around(&plain)).unwrap();
    // Beside what the crate collects for its writer.
    let bytes = context.sizeof() + 32 * 1_024;
    assert!(bytes <= ZSTD_BYTES_MAX && bytes > ZSTD_BYTES_MAX / 2, "{bytes}");
}
