//! The media type of a file, from its extension.
//!
//! A table of ours comes before that of `mime_guess`, which is named here and nowhere else. A type is IANA's where it has one,
//! else nginx's. A type that browsers run, or that they render with what runs in it, is named for a few extensions alone: an
//! upload with another one is no page of its site.

mod nginx;

pub use nginx::{nginx_extensions, nginx_media_type};

/// The media type of files with this extension, which has no dot and may be in upper case.
#[must_use]
pub fn media_type(extension: &str) -> Option<&'static str> {
    let ours = OURS.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension));
    let kind =
        ours.map(|(_, kind)| *kind).or_else(|| mime_guess::from_ext(extension).first_raw())?;
    let is_known = || RUN_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension));
    (!is_run(kind) || is_known()).then_some(kind)
}

/// True if browsers run files of this type, or render them with what runs in them: any XML may have scripts.
fn is_run(kind: &str) -> bool {
    let ends = ["xml", "javascript", "ecmascript"];
    ["text/html", "application/wasm"].contains(&kind) || ends.iter().any(|end| kind.ends_with(end))
}

/// The extensions of files that browsers run, or render with what runs in them: no other one has such a type by itself.
pub const RUN_EXTENSIONS: &[&str] = &[
    "atom", "cjs", "gpx", "htm", "html", "js", "kml", "mathml", "mjs", "mpd", "rdf", "rss",
    "shtml", "svg", "svgz", "wasm", "wsdl", "xht", "xhtml", "xml", "xsl", "xslt", "xspf",
];

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
