use std::cell::Cell;
use std::io::Read as _;
use std::sync::Arc;

use flate2::read::ZlibDecoder;
use rcgen::PKCS_ECDSA_P256_SHA256;
use rustls::compress::{CertDecompressor, CompressionCache, DecompressionFailed};
use rustls::crypto::aws_lc_rs;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, ServerConfig};

use super::*;
use crate::policy::{Policy, SiteGroup};
use crate::test_identity::{able_client, accept, acceptor_with, handshake, identity, resumption};

thread_local! {
    static DECOMPRESSED: Cell<usize> = const { Cell::new(0) };
}

/// The number of messages that came compressed to a client of this thread meanwhile.
fn decompressed(run: impl FnOnce()) -> usize {
    DECOMPRESSED.set(0);
    run();
    DECOMPRESSED.get()
}

#[derive(Debug)]
enum Client {
    Brotli,
    Zlib,
}

impl CertDecompressor for Client {
    fn decompress(&self, mut input: &[u8], output: &mut [u8]) -> Result<(), DecompressionFailed> {
        let mut plain = Vec::new();
        let done = match self {
            Self::Brotli => brotli::BrotliDecompress(&mut input, &mut plain),
            Self::Zlib => ZlibDecoder::new(input).read_to_end(&mut plain).map(|_| ()),
        };
        done.map_err(|_| DecompressionFailed)?;
        assert_eq!(plain.len(), output.len());
        output.copy_from_slice(&plain);
        DECOMPRESSED.set(DECOMPRESSED.get() + 1);
        Ok(())
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        match self {
            Self::Brotli => CertificateCompressionAlgorithm::Brotli,
            Self::Zlib => CertificateCompressionAlgorithm::Zlib,
        }
    }
}

fn client(takes: &[&'static dyn CertDecompressor]) -> Arc<ClientConfig> {
    let mut config = able_client();
    config.resumption = rustls::client::Resumption::disabled();
    config.cert_decompressors = takes.to_vec();
    Arc::new(config)
}

/// A server that always shows the same.
fn server(certified: &CertifiedKey) -> Arc<ServerConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let mut config = builder
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified.clone())));
    config.cert_compression_cache = Arc::new(CompressionCache::Disabled);
    config.cert_compressors = COMPRESSORS.to_vec();
    Arc::new(config)
}

/// A chain of so many certificates, with this staple.
fn certified(certificates: usize, staple: Option<&[u8]>) -> CertifiedKey {
    let own = identity(&["a.example"], &PKCS_ECDSA_P256_SHA256);
    let mut certified = (**own.certified()).clone();
    let leaf = certified.cert[0].clone();
    certified.cert = vec![leaf; certificates];
    certified.ocsp = staple.map(<[u8]>::to_vec);
    certified
}

#[test]
fn the_message_is_found_that_rustls_writes_with_and_without_a_staple() {
    let staple = [0x30; 1_700];
    for (certificates, staple) in [(1, None), (3, None), (1, Some(&staple[..])), (3, Some(&staple))]
    {
        let shown = certified(certificates, staple);
        let _kept = CompressedChain::new(&shown);
        let server = server(&shown);
        for takes in [[&Client::Brotli as &dyn CertDecompressor], [&Client::Zlib]] {
            let count =
                decompressed(|| drop(handshake(&client(&takes), &server, "a.example").unwrap()));
            assert_eq!(count, 1, "{certificates} {takes:?}");
        }
    }
}

#[test]
fn what_is_not_known_and_what_is_not_asked_for_goes_out_as_it_is() {
    let shown = certified(2, None);
    let server = server(&shown);
    let both: [&dyn CertDecompressor; 2] = [&Client::Zlib, &Client::Brotli];
    let counted = |takes: &[_]| {
        decompressed(|| drop(handshake(&client(takes), &server, "a.example").unwrap()))
    };

    assert_eq!(counted(&both), 0);
    let kept = CompressedChain::new(&shown);
    assert_eq!((counted(&both), counted(&[])), (1, 0));
    drop(kept);
    assert_eq!(counted(&both), 0);
}

#[test]
fn a_chain_that_two_have_is_kept_until_both_are_gone() {
    let shown = certified(1, None);
    let known = || read().contains_key(&sha256(&certificate_message(&shown)));
    let first = CompressedChain::new(&shown);
    let second = CompressedChain::new(&shown);

    drop(first);
    assert!(known());
    drop(second);
    assert!(!known());
}

#[test]
fn sites_compress_only_where_the_policy_says_so() {
    for certificate_compression in [true, false] {
        let policy = Policy { certificate_compression, ..Policy::default() };
        let acceptors = acceptor_with(&policy, &resumption(), &SiteGroup::default()).into();
        let client = client(&[&Client::Brotli]);
        let count = decompressed(|| drop(accept(&client, "a.example", &acceptors).unwrap()));
        assert_eq!(count, usize::from(certificate_compression));
    }
}
