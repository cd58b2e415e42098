//! The facts that version 2 says besides addresses: types, lengths, values (§2.2).

/// The values behind the addresses of a header. Each is whole, which [`crate::proxy::parse`] has seen to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tlvs<'b>(&'b [u8]);

/// One value. Types that nothing here reads are not listed; a receiver ignores what it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tlv<'b> {
    /// The application protocol agreed on in TLS.
    Alpn(&'b [u8]),
    /// The name the client asked for (SNI).
    Authority(&'b [u8]),
    /// A number for this connection, at most 128 bytes.
    UniqueId(&'b [u8]),
    /// The client's certificate in PEM, as hitch says it.
    ClientCertificate(&'b [u8]),
    /// Facts on TLS towards the client.
    Tls(TlsFacts<'b>),
}

/// Facts on TLS towards the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsFacts<'b> {
    /// True if the client showed a certificate over this connection.
    pub certificate_on_connection: bool,
    /// True if it did over this session: on this connection, or on the one that was resumed.
    pub certificate_in_session: bool,
    /// Zero if the certificate was verified, anything else if not, or if there is none.
    pub verify_result: u32,
    /// As OpenSSL writes it: `TLSv1.3`.
    pub version: Option<&'b [u8]>,
    /// The common name of the client's certificate.
    pub common_name: Option<&'b [u8]>,
    /// The cipher suite as OpenSSL writes it.
    pub cipher: Option<&'b [u8]>,
}

impl<'b> Tlvs<'b> {
    /// `None` if one of them is not whole.
    pub(super) fn new(bytes: &'b [u8]) -> Option<Self> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (kind, value, behind) = split(rest)?;
            if kind == TLS {
                let values = value.get(TLS_PREFIX_BYTES..)?;
                // Their form is checked here too, so that their reader need not.
                let mut rest = values;
                while !rest.is_empty() {
                    rest = split(rest)?.2;
                }
            }
            rest = behind;
        }
        Some(Self(bytes))
    }

    /// Types and values as they stand there.
    pub fn raw(self) -> impl Iterator<Item = (u8, &'b [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (kind, value, behind) = split(rest)?;
            rest = behind;
            Some((kind, value))
        })
    }

    /// The values whose types are known.
    pub fn iter(self) -> impl Iterator<Item = Tlv<'b>> {
        self.raw().filter_map(|(kind, value)| match kind {
            ALPN => Some(Tlv::Alpn(value)),
            AUTHORITY => Some(Tlv::Authority(value)),
            UNIQUE_ID => Some(Tlv::UniqueId(value)),
            CLIENT_CERTIFICATE => Some(Tlv::ClientCertificate(value)),
            TLS => TlsFacts::read(value).map(Tlv::Tls),
            _ => None,
        })
    }
}

fn split(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[kind, high, low], rest) = bytes.split_first_chunk::<3>()?;
    let (value, behind) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
    Some((kind, value, behind))
}

impl Tlv<'_> {
    pub(super) fn write(&self, target: &mut Vec<u8>) {
        match self {
            Tlv::Alpn(value) => write(target, ALPN, value),
            Tlv::Authority(value) => write(target, AUTHORITY, value),
            Tlv::UniqueId(value) => write(target, UNIQUE_ID, value),
            Tlv::ClientCertificate(value) => write(target, CLIENT_CERTIFICATE, value),
            Tlv::Tls(facts) => {
                let mut value = Vec::with_capacity(TLS_VALUE_BYTES);
                facts.write(&mut value);
                write(target, TLS, &value);
            }
        }
    }
}

impl<'b> TlsFacts<'b> {
    /// `None` if the client does not speak TLS to the sender, or the value is cut short.
    fn read(value: &'b [u8]) -> Option<Self> {
        let (&[client, result @ ..], values) = value.split_first_chunk::<TLS_PREFIX_BYTES>()?;
        if client & CLIENT_SPEAKS_TLS == 0 {
            return None;
        }
        let of =
            |wanted| Tlvs(values).raw().find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
        Some(Self {
            certificate_on_connection: client & CERTIFICATE_ON_CONNECTION != 0,
            certificate_in_session: client & CERTIFICATE_IN_SESSION != 0,
            verify_result: u32::from_be_bytes(result),
            version: of(TLS_VERSION),
            common_name: of(TLS_COMMON_NAME),
            cipher: of(TLS_CIPHER),
        })
    }

    fn write(&self, target: &mut Vec<u8>) {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        target.push(
            CLIENT_SPEAKS_TLS
                | flag(self.certificate_on_connection, CERTIFICATE_ON_CONNECTION)
                | flag(self.certificate_in_session, CERTIFICATE_IN_SESSION),
        );
        target.extend_from_slice(&self.verify_result.to_be_bytes());
        let values = [
            (TLS_VERSION, self.version),
            (TLS_COMMON_NAME, self.common_name),
            (TLS_CIPHER, self.cipher),
        ];
        for (kind, value) in values {
            if let Some(value) = value {
                write(target, kind, value);
            }
        }
    }
}

/// A value longer than its length can say is left out.
fn write(target: &mut Vec<u8>, kind: u8, value: &[u8]) {
    let Ok(bytes) = u16::try_from(value.len()) else { return };
    target.push(kind);
    target.extend_from_slice(&bytes.to_be_bytes());
    target.extend_from_slice(value);
}

/// `PP2_TYPE_…` and `PP2_SUBTYPE_SSL_…` (§2.2).
const ALPN: u8 = 0x01;
const AUTHORITY: u8 = 0x02;
pub(super) const CHECKSUM: u8 = 0x03;
const UNIQUE_ID: u8 = 0x05;
const TLS: u8 = 0x20;
const TLS_VERSION: u8 = 0x21;
const TLS_COMMON_NAME: u8 = 0x22;
const TLS_CIPHER: u8 = 0x23;

/// From the range for what applications agree on among themselves (§2.2.7): hitch's `proxy-client-cert`.
const CLIENT_CERTIFICATE: u8 = 0xe0;

/// `PP2_CLIENT_…` (§2.2.6).
const CLIENT_SPEAKS_TLS: u8 = 0x01;
const CERTIFICATE_ON_CONNECTION: u8 = 0x02;
const CERTIFICATE_IN_SESSION: u8 = 0x04;

/// Flags and verify result.
const TLS_PREFIX_BYTES: usize = 5;
/// Room for what is usually said.
const TLS_VALUE_BYTES: usize = 96;
