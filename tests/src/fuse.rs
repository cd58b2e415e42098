//! A file system whose files answer, or never do: a server of the FUSE protocol (`linux/fuse.h`, version 7.31) as small as a
//! test needs it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use crate::content::content;
use crate::environment::{patience, skip};
use crate::mounted::Mounted;

/// The questions that a file never answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silent {
    /// It answers everything.
    Never,
    /// If it is there.
    Lookup,
    /// Opening it.
    Open,
    /// Reading what is beyond so many bytes.
    ReadBeyond(u64),
    /// Closing it.
    Close,
}

/// A mounted file system that this process answers for.
pub struct Fuse {
    mounted: Option<Mounted>,
    server: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    unanswered: Mutex<usize>,
    one_more: Condvar,
}

/// One file: its name, its length, what it keeps silent about.
type Entry = (&'static str, usize, Silent);

impl Fuse {
    /// Mounts files, each with the [`content`] of its length.
    ///
    /// # Errors
    /// The reason, where there is no FUSE.
    pub fn mount(folder: PathBuf, files: &'static [Entry]) -> Result<Self, String> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| error.to_string())?;
        let input = device.try_clone().unwrap().into();
        let options = "fd=0,rootmode=40000,user_id=0,group_id=0,allow_other";
        let mounted = Some(Mounted::at(folder, "fuse", options, input)?);
        let shared = Arc::new(Shared::default());
        let serving = Serving { device, files, shared: Arc::clone(&shared) };
        let server = Some(std::thread::spawn(move || serving.run()));
        Ok(Self { mounted, server, shared })
    }

    /// The same; where there is no FUSE, the calling test is noted down as skipped and should return.
    pub fn mount_or_skip(folder: PathBuf, files: &'static [Entry]) -> Option<Self> {
        let fuse = Self::mount(folder, files);
        fuse.inspect_err(|error| skip(&format!("no FUSE here: {error}"))).ok()
    }

    /// Waits until so many requests are left without an answer.
    pub fn wait_for_unanswered(&self, count: usize) {
        let unanswered = self.shared.unanswered.lock().unwrap();
        let waiting = |unanswered: &mut usize| *unanswered < count;
        let (unanswered, ended) =
            self.shared.one_more.wait_timeout_while(unanswered, patience(), waiting).unwrap();
        assert!(!ended.timed_out(), "only {unanswered} of {count} requests hang");
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        // Ends the connection: what was left without an answer fails, and the server's next read, too.
        self.mounted = None;
        let _ = self.server.take().map(JoinHandle::join);
    }
}

struct Serving {
    device: File,
    files: &'static [Entry],
    shared: Arc<Shared>,
}

impl Serving {
    fn run(mut self) {
        let mut request = vec![0; REQUEST_BYTES];
        while let Ok(bytes) = self.device.read(&mut request) {
            self.answer(&request[..bytes]);
        }
    }

    fn answer(&mut self, request: &[u8]) {
        let opcode = u32_at(request, 4);
        let unique = &request[8..16];
        let node = u64_at(request, 16);
        let body = &request[HEADER_BYTES..];
        let file = node.checked_sub(FIRST_NODE).and_then(|index| self.files.get(index as usize));
        let silent = file.map_or(Silent::Never, |(.., silent)| *silent);
        let sought = self.files.iter().find(|(name, ..)| body.starts_with(name.as_bytes()));
        let is_silent = match opcode {
            LOOKUP => sought.is_some_and(|(.., silent)| *silent == Silent::Lookup),
            OPEN => silent == Silent::Open,
            READ => matches!(silent, Silent::ReadBeyond(bytes) if u64_at(body, 8) >= bytes),
            FLUSH => silent == Silent::Close,
            _ => false,
        };
        if is_silent {
            *self.shared.unanswered.lock().unwrap() += 1;
            self.shared.one_more.notify_all();
            return;
        }
        let answer = match opcode {
            FORGET | BATCH_FORGET | INTERRUPT => return,
            INIT => Ok(init(body)),
            LOOKUP => self.lookup(body),
            GETATTR => {
                let mut answer = FOREVER.to_le_bytes().to_vec();
                answer.extend([0; 8]);
                answer.extend(attributes(node, file));
                Ok(answer)
            }
            OPEN => Ok(vec![0; 16]),
            READ => Ok(read(file.map_or(0, |(_, bytes, _)| *bytes), body)),
            RELEASE | FLUSH | ACCESS | DESTROY => Ok(Vec::new()),
            STATFS => Ok(vec![0; 80]),
            _ => Err(ENOSYS),
        };
        let (error, content) = match answer {
            Ok(content) => (0, content),
            Err(error) => (-error, Vec::new()),
        };
        let mut reply = Vec::new();
        reply.extend(((16 + content.len()) as u32).to_le_bytes());
        reply.extend(i32::to_le_bytes(error));
        reply.extend(unique);
        reply.extend(content);
        // The asker may have been killed meanwhile.
        let _ = self.device.write(&reply);
    }

    fn lookup(&self, name: &[u8]) -> Result<Vec<u8>, i32> {
        let name = name.strip_suffix(&[0]).unwrap();
        let found = self.files.iter().enumerate().find(|(_, (known, ..))| known.as_bytes() == name);
        let (index, file) = found.ok_or(ENOENT)?;
        let node = FIRST_NODE + index as u64;
        let mut answer = Vec::new();
        for number in [node, 0, FOREVER, FOREVER, 0] {
            answer.extend(number.to_le_bytes());
        }
        answer.extend(attributes(node, Some(file)));
        Ok(answer)
    }
}

fn init(body: &[u8]) -> Vec<u8> {
    let read_ahead_bytes = u32_at(body, 8);
    let mut answer = Vec::new();
    for number in [7, 31, read_ahead_bytes, 0, 0, WRITE_BYTES_MAX, 1] {
        answer.extend(u32::to_le_bytes(number));
    }
    answer.resize(64, 0);
    answer
}

/// `struct fuse_attr`.
fn attributes(node: u64, file: Option<&Entry>) -> Vec<u8> {
    let (bytes, mode) = file.map_or((0, 0o040_755), |(_, bytes, _)| (*bytes as u64, 0o100_644));
    let mut attributes = Vec::new();
    for number in [node, bytes, bytes.div_ceil(512), MODIFIED, MODIFIED, MODIFIED] {
        attributes.extend(number.to_le_bytes());
    }
    for number in [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0] {
        attributes.extend(u32::to_le_bytes(number));
    }
    attributes
}

fn read(file_bytes: usize, body: &[u8]) -> Vec<u8> {
    let offset = u64_at(body, 8) as usize;
    let wanted = u32_at(body, 16) as usize;
    let end = (offset + wanted).min(file_bytes);
    content(end).split_off(offset.min(end))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

const HEADER_BYTES: usize = 40;
/// The least that Linux accepts for reading requests is 8 KiB, or a header and the largest write.
const REQUEST_BYTES: usize = 64 * 1024;
const WRITE_BYTES_MAX: u32 = 4096;

/// Node 1 is the root.
const FIRST_NODE: u64 = 2;
/// Seconds for which the kernel need not ask again.
const FOREVER: u64 = 1 << 30;
/// A time of modification long ago.
const MODIFIED: u64 = 1_000_000_000;

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const ACCESS: u32 = 34;
const INTERRUPT: u32 = 36;
const DESTROY: u32 = 38;
const BATCH_FORGET: u32 = 42;

const ENOENT: i32 = 2;
const ENOSYS: i32 = 38;
