//! What a response is: a finished head, and a body that says where its bytes are.
//!
//! Whoever answers a request decides the head and the body once; only `deliver` reads the body.

use std::sync::Arc;

use bytes::Bytes;
use kettle_config::PathChoice;
use kettle_http::range::Span;

use crate::open_file::OpenFile;

/// A response ready to be delivered.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status code.
    pub status: u16,
    /// The complete head, status line to empty line.
    pub head: Vec<u8>,
    /// Where the body's bytes are. `Body::Empty` for HEAD requests, whatever `head` announces.
    pub body: Body,
    /// Whether the connection closes after this response (the head then says so).
    pub closes: bool,
    /// The path its site prefers to the listener's.
    pub path: Option<PathChoice>,
}

/// Where the bytes of a body are.
#[derive(Debug)]
pub enum Body {
    /// There is none.
    Empty,
    /// In this process's memory.
    Memory(Bytes),
    /// In a file.
    File {
        /// The open file.
        file: Arc<OpenFile>,
        /// Which of its bytes.
        span: Span,
    },
    /// Pieces one after the other (`multipart/byteranges`).
    Parts(Vec<Part>),
}

impl Body {
    /// How many bytes there are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Body::Empty => 0,
            Body::Memory(bytes) => bytes.len() as u64,
            Body::File { span, .. } => span.bytes,
            Body::Parts(parts) => parts.iter().map(Part::bytes).sum(),
        }
    }

    /// The file its bytes come from; a response never has several.
    #[must_use]
    pub fn file(&self) -> Option<&OpenFile> {
        match self {
            Body::Empty | Body::Memory(_) => None,
            Body::File { file, .. } => Some(file),
            Body::Parts(parts) => parts.iter().find_map(|part| match part {
                Part::Memory(_) => None,
                Part::File { file, .. } => Some(&**file),
            }),
        }
    }
}

/// One piece of a body of several.
#[derive(Debug)]
pub enum Part {
    /// In this process's memory.
    Memory(Bytes),
    /// In a file.
    File {
        /// The open file.
        file: Arc<OpenFile>,
        /// Which of its bytes.
        span: Span,
    },
}

impl Part {
    fn bytes(&self) -> u64 {
        match self {
            Part::Memory(bytes) => bytes.len() as u64,
            Part::File { span, .. } => span.bytes,
        }
    }
}
