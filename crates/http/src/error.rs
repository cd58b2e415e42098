//! Why a request was refused: always the peer's doing, always with the status to answer.

use std::fmt;

/// A rule of RFC 9110 or RFC 9112 that a request broke, or a limit it exceeded.
///
/// After an error in a head or a body the connection has to close: where the next request would
/// begin is not certain. An error of [`crate::RequestHead::target`] leaves that certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestError {
    /// More empty lines before the request line than are tolerated (RFC 9112 §2.2).
    LeadingLines,
    /// The method is not a token.
    Method,
    /// The method is longer than any known one (RFC 9112 §3).
    MethodTooLong,
    /// The request target holds a byte that no URI may hold, or is empty.
    TargetCharacter,
    /// The request target is longer than the limit.
    TargetTooLong,
    /// The request target has none of the forms of RFC 9112 §3.2 that fit the method.
    TargetForm,
    /// CONNECT: this server opens no tunnels for its clients.
    ConnectUnsupported,
    /// The protocol version is malformed.
    VersionSyntax,
    /// The major version is not 1.
    VersionUnsupported,
    /// A line does not end with CRLF.
    LineEnding,
    /// A field name is empty, holds a character that is not allowed, or is followed by white
    /// space; or a line is folded.
    FieldName,
    /// A field value holds a control character or a bare CR.
    FieldValue,
    /// The head is longer than the limit.
    HeadTooLarge,
    /// The head has more field lines than the limit.
    TooManyFields,
    /// HTTP/1.1 without Host (RFC 9112 §3.2).
    HostMissing,
    /// More than one Host line.
    HostRepeated,
    /// The value of Host, or the authority of the target, is not a host with an optional port.
    HostInvalid,
    /// More than one Content-Length line.
    ContentLengthRepeated,
    /// Content-Length is not a decimal number that fits 64 bits.
    ContentLengthInvalid,
    /// Both Transfer-Encoding and Content-Length.
    TransferEncodingWithContentLength,
    /// Transfer-Encoding in HTTP/1.0.
    TransferEncodingInHttp10,
    /// `chunked` is not the last transfer coding, or there twice (RFC 9112 §6.3).
    TransferEncodingInvalid,
    /// Transfer codings other than `chunked`.
    TransferCodingUnsupported,
    /// A chunk size is missing, not hexadecimal, or does not fit 64 bits.
    ChunkSize,
    /// A chunk extension holds a control character, or does not begin with a semicolon.
    ChunkExtension,
    /// A chunk line is longer than the limit.
    ChunkLineTooLong,
    /// The data of a chunk is not followed by CRLF.
    ChunkEnd,
    /// A trailer line is malformed.
    Trailer,
    /// The trailer section is longer than the limit.
    TrailersTooLarge,
    /// A percent sign in the path is not followed by two hexadecimal digits.
    PathEncoding,
    /// The path holds NUL or another control character, or an encoded slash that a server might read otherwise.
    PathCharacter,
    /// The path climbs above the root.
    PathTraversal,
    /// The path holds a backslash, an encoded slash, or a dot segment behind percent-encoding; no file served here has such a name.
    PathAmbiguous,
    /// The decoded path is not UTF-8; no file served here has such a name.
    PathNotUtf8,
}

impl RequestError {
    /// The status to answer with.
    #[must_use]
    pub fn status(self) -> u16 {
        self.entry().0
    }

    /// A word for logs and metrics, in snake case.
    #[must_use]
    pub fn reason(self) -> &'static str {
        self.entry().1
    }

    fn entry(self) -> (u16, &'static str) {
        match self {
            RequestError::LeadingLines => (400, "leading_lines"),
            RequestError::Method => (400, "method"),
            RequestError::MethodTooLong => (501, "method_too_long"),
            RequestError::TargetCharacter => (400, "target_character"),
            RequestError::TargetTooLong => (414, "target_too_long"),
            RequestError::TargetForm => (400, "target_form"),
            RequestError::ConnectUnsupported => (501, "connect_unsupported"),
            RequestError::VersionSyntax => (400, "version_syntax"),
            RequestError::VersionUnsupported => (505, "version_unsupported"),
            RequestError::LineEnding => (400, "line_ending"),
            RequestError::FieldName => (400, "field_name"),
            RequestError::FieldValue => (400, "field_value"),
            RequestError::HeadTooLarge => (431, "head_too_large"),
            RequestError::TooManyFields => (431, "too_many_fields"),
            RequestError::HostMissing => (400, "host_missing"),
            RequestError::HostRepeated => (400, "host_repeated"),
            RequestError::HostInvalid => (400, "host_invalid"),
            RequestError::ContentLengthRepeated => (400, "content_length_repeated"),
            RequestError::ContentLengthInvalid => (400, "content_length_invalid"),
            RequestError::TransferEncodingWithContentLength => {
                (400, "transfer_encoding_with_content_length")
            }
            RequestError::TransferEncodingInHttp10 => (400, "transfer_encoding_in_http_1_0"),
            RequestError::TransferEncodingInvalid => (400, "transfer_encoding_invalid"),
            RequestError::TransferCodingUnsupported => (501, "transfer_coding_unsupported"),
            RequestError::ChunkSize => (400, "chunk_size"),
            RequestError::ChunkExtension => (400, "chunk_extension"),
            RequestError::ChunkLineTooLong => (400, "chunk_line_too_long"),
            RequestError::ChunkEnd => (400, "chunk_end"),
            RequestError::Trailer => (400, "trailer"),
            RequestError::TrailersTooLarge => (431, "trailers_too_large"),
            RequestError::PathEncoding => (400, "path_encoding"),
            RequestError::PathCharacter => (400, "path_character"),
            RequestError::PathTraversal => (400, "path_traversal"),
            RequestError::PathAmbiguous => (404, "path_ambiguous"),
            RequestError::PathNotUtf8 => (404, "path_not_utf8"),
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "request refused with {}: {}", self.status(), self.reason())
    }
}

impl std::error::Error for RequestError {}

#[cfg(test)]
mod tests;
