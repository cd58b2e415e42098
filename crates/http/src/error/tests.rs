//! The status and the word of each refusal.

use std::collections::HashSet;

use super::RequestError::{self, *};

/// Every refusal, by the status clients get.
const BY_STATUS: &[(u16, &[RequestError])] = &[
    (
        400,
        &[
            LeadingLines,
            Method,
            TargetCharacter,
            TargetForm,
            VersionSyntax,
            LineEnding,
            FieldName,
            FieldValue,
            HostMissing,
            HostRepeated,
            HostInvalid,
            ContentLengthRepeated,
            ContentLengthInvalid,
            TransferEncodingWithContentLength,
            TransferEncodingInHttp10,
            TransferEncodingInvalid,
            ChunkSize,
            ChunkExtension,
            ChunkLineTooLong,
            ChunkEnd,
            Trailer,
            PathEncoding,
            PathCharacter,
            PathTraversal,
        ],
    ),
    (404, &[PathAmbiguous, PathNotUtf8]),
    (414, &[TargetTooLong]),
    (431, &[HeadTooLarge, TooManyFields, TrailersTooLarge]),
    (501, &[MethodTooLong, ConnectUnsupported, TransferCodingUnsupported]),
    (505, &[VersionUnsupported]),
];

#[test]
fn each_refusal_has_its_status_and_a_word_of_its_own() {
    let mut words = HashSet::new();
    for (status, errors) in BY_STATUS {
        for error in *errors {
            assert_eq!(error.status(), *status, "{error:?}");
            // The word is the name in snake case.
            let word = error.reason().replace('_', "");
            assert_eq!(word, format!("{error:?}").to_lowercase());
            assert!(words.insert(error.reason()), "{error:?}");
            let expected = format!("request refused with {status}: {}", error.reason());
            assert_eq!(error.to_string(), expected);
        }
    }
}
