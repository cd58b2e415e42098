//! The media type of a file, from its extension.
//!
//! A table of ours comes before that of `mime_guess`, which is named here and nowhere else. A type is IANA's where it has one,
//! else nginx's.

/// The media type of files with this extension, which has no dot and may be in upper case.
#[must_use]
pub fn media_type(extension: &str) -> Option<&'static str> {
    let ours = OURS.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension));
    ours.map(|(_, kind)| *kind).or_else(|| mime_guess::from_ext(extension).first_raw())
}

/// Extensions that `mime_guess` does not know, or knows by a name that players, browsers or package managers do not take.
const OURS: &[(&str, &str)] = &[
    ("3mf", "model/3mf"),
    ("cbor", "application/cbor"),
    ("cer", "application/pkix-cert"),
    ("cjs", "text/javascript"),
    ("deb", "application/vnd.debian.binary-package"),
    ("ipa", "application/octet-stream"),
    ("ktx2", "image/ktx2"),
    ("m2t", "video/mp2t"),
    ("m2ts", "video/mp2t"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4a", "audio/mp4"),
    ("m4b", "audio/mp4"),
    ("m4s", "video/iso.segment"),
    ("map", "application/json"),
    ("mid", "audio/midi"),
    ("midi", "audio/midi"),
    ("mjs", "text/javascript"),
    ("mobileconfig", "application/x-apple-aspen-config"),
    ("ndjson", "application/x-ndjson"),
    ("obj", "model/obj"),
    ("otf", "font/otf"),
    ("ra", "audio/x-realaudio"),
    ("rpm", "application/x-redhat-package-manager"),
    ("sea", "application/x-sea"),
    ("stl", "model/stl"),
    ("tgz", "application/gzip"),
    ("toml", "application/toml"),
    ("ts", "video/mp2t"),
    ("udeb", "application/vnd.debian.binary-package"),
    ("usdz", "model/vnd.usdz+zip"),
    ("vcf", "text/vcard"),
    ("woff", "font/woff"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zst", "application/zstd"),
];

#[cfg(test)]
mod tests;
