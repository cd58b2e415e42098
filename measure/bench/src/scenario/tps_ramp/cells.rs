//! Which servers a ramp is run on, and how each is set up: the base case, and one axis at a time away from it.
//!
//! All axes combined would be thousands of ramps. Axes the user names are combined, because the user says how many.

use std::collections::BTreeSet;

use kettle_loadgen::offer::{Offer, ResumeBy};
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

use crate::peers::subject::{CertificateKey, Program, Role, Subject, SubjectPath};
use crate::results::{Point, Value, distinct};
use crate::scenario::Options;
use crate::scenario::options::Effort;
use crate::word::Word;

/// A server set up in one way, on which a ramp is run for each number of transactions per session.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub subject: Subject,
    pub case: Case,
    /// Transactions with one TLS session: a ramp each.
    pub per_session: Vec<u32>,
}

/// The setup of a server, but for its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub workers: usize,
    pub key: CertificateKey,
    /// TLS, one choice each.
    pub offer: Offer,
}

/// The cells to measure, and those that cannot be measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    /// In the order in which they are measured: subjects of one case follow each other.
    pub cells: Vec<Cell>,
    /// The cells that were asked for and do not exist, with the reason.
    pub refused: Vec<(String, String)>,
}

impl Cells {
    /// Chooses by the options, for a server that may have so many processors.
    pub fn of(options: &Options, processors: usize) -> Self {
        let mut cells = Self::default();
        for (case, per_session) in cases(options, &mut cells.refused) {
            if case.workers > processors {
                cells.refuse_workers(case.workers, processors);
                continue;
            }
            for subject in subjects(options) {
                cells.cells.push(Cell { subject, case, per_session: per_session.clone() });
            }
        }
        cells.refused = distinct(cells.refused);
        cells
    }

    fn refuse_workers(&mut self, workers: usize, processors: usize) {
        let why = format!(
            "the server may have {processors} of this machine's processors; more workers than processors would measure the \
             scheduler"
        );
        self.refused.push((format!("{workers} workers"), why));
    }
}

impl Cell {
    /// Returns where on the axes the ramp with this number of transactions per session lies.
    pub fn point(&self, per_session: u32) -> Point {
        let word = |word: &str| Value::Word(word.to_owned());
        let Case { workers, key, offer } = self.case;
        Point::from([
            ("k".to_owned(), Value::Number(f64::from(per_session))),
            ("workers".to_owned(), Value::Number(workers as f64)),
            ("key".to_owned(), word(key.word())),
            ("suite".to_owned(), word(offer.cipher.word())),
            ("group".to_owned(), word(offer.group.word())),
            ("version".to_owned(), word(offer.version.word())),
            ("resumption".to_owned(), word(offer.resume_by.word())),
            ("role".to_owned(), word(self.subject.role.word())),
        ])
    }
}

/// Every server in each way of working that is asked for. Left open, a server with bodies of its own answers them itself, and
/// the others stand before the backend.
fn subjects(options: &Options) -> Vec<Subject> {
    let programs =
        options.servers.clone().unwrap_or_else(|| Program::ALL.iter().map(|(p, _)| *p).collect());
    let mut subjects = Vec::new();
    for program in programs {
        let own = if has_bodies(program) { Role::Files } else { Role::Terminator };
        let roles = match (&options.roles, options.effort) {
            (Some(roles), _) => roles.clone(),
            (None, Effort::Thorough) => vec![own, Role::Terminator],
            (None, _) => vec![own],
        };
        for role in roles {
            if role == Role::Terminator || has_bodies(program) {
                let paths = paths(options, program, role).into_iter();
                subjects.extend(paths.map(|path| Subject { program, path, role }));
            }
        }
    }
    distinct(subjects)
}

fn has_bodies(program: Program) -> bool {
    matches!(program, Program::Kettle | Program::Nginx | Program::Haproxy)
}

/// A kilobyte is not worth a move into the kernel, so without a wish a server encrypts as it does by itself.
fn paths(options: &Options, program: Program, role: Role) -> Vec<SubjectPath> {
    match (role, &options.paths, program) {
        (_, None, Program::Kettle) => vec![SubjectPath::Auto],
        (Role::Files, Some(paths), _) | (_, Some(paths), Program::Kettle) => paths.clone(),
        // Of terminators, kettle alone chooses.
        _ => vec![SubjectPath::User],
    }
}

/// The cases with their numbers of transactions per session.
fn cases(options: &Options, refused: &mut Vec<(String, String)>) -> Vec<(Case, Vec<u32>)> {
    let few = options.per_session.clone().unwrap_or_else(|| vec![1, 4]);
    let all = options.effort.pick(vec![1, 4], vec![1, 4, 8, 80], vec![1, 4, 8, 80]);
    let all = options.per_session.clone().unwrap_or(all);
    let axes = axes(options);
    let combined = combined(&axes).into_iter().map(|case| (case, &all));
    let extra = extra(&axes, options.effort).into_iter().map(|case| (case, &few));
    let mut cases: Vec<(Case, Vec<u32>)> = Vec::new();
    for (case, per_session) in combined.chain(extra) {
        if let Some(why) = impossible(&case) {
            let Offer { version, group, resume_by, .. } = case.offer;
            let words = (version.word(), group.word(), resume_by.word());
            refused.push((format!("TLS {}, {}, {}", words.0, words.1, words.2), why.to_owned()));
        } else if !cases.iter().any(|(other, _)| *other == case) {
            cases.push((case, possible(case, per_session)));
        }
    }
    cases.retain(|(_, per_session)| !per_session.is_empty());
    cases
}

/// Sessions that are never resumed have one transaction each. The fewest come first.
fn possible(case: Case, per_session: &[u32]) -> Vec<u32> {
    let resumes = case.offer.resume_by != ResumeBy::Nothing;
    let distinct: BTreeSet<u32> = per_session.iter().copied().collect();
    distinct.into_iter().filter(|k| *k == 1 || (resumes && *k > 1)).collect()
}

fn impossible(case: &Case) -> Option<&'static str> {
    match case.offer {
        Offer { version: Version::Tls12, group: Group::X25519MlKem768, .. } => {
            Some("this group exists in TLS 1.3 only")
        }
        Offer { version: Version::Tls13, resume_by: ResumeBy::SessionId, .. } => {
            Some("TLS 1.3 has tickets only; write --tls 1.2")
        }
        Offer { version: Version::Tls12, resume_by: ResumeBy::EarlyData, .. } => {
            Some("early data exists in TLS 1.3 only")
        }
        _ => None,
    }
}

/// An axis, by what its values make of a case.
struct Axis {
    /// The changes combined with all other axes; at least one, and the first is the base case's.
    combined: Vec<Change>,
    /// The changes tried one at a time beside the base case.
    extra: Vec<Change>,
}

type Change = Box<dyn Fn(Case) -> Case>;

impl Axis {
    /// With the values the user named, or the usual ones.
    fn of<T: Copy + 'static>(
        named: Option<&[T]>,
        base: T,
        extra: &[T],
        set: fn(&mut Case, T),
    ) -> Self {
        let change = |value: &T| -> Change {
            let value = *value;
            Box::new(move |mut case: Case| {
                set(&mut case, value);
                case
            })
        };
        match named {
            Some(named) if !named.is_empty() => {
                Self { combined: named.iter().map(change).collect(), extra: Vec::new() }
            }
            _ => Self { combined: vec![change(&base)], extra: extra.iter().map(change).collect() },
        }
    }
}

/// All axes. That of keys comes first: a normal look leaves the base case by it alone.
fn axes(options: &Options) -> [Axis; 6] {
    let version = options.version.unwrap_or(Version::Tls13);
    let resumption: Option<Vec<_>> = options.resume.as_ref().map(|kinds| {
        let with_version = |kind: &ResumeBy| match (options.version, kind) {
            // The only version that has it, unless another was asked for.
            (None, ResumeBy::SessionId) => (Version::Tls12, *kind),
            _ => (version, *kind),
        };
        kinds.iter().map(with_version).collect()
    });
    let other_kinds: &[_] = match options.version {
        None => &[(Version::Tls12, ResumeBy::Ticket), (Version::Tls12, ResumeBy::SessionId)],
        Some(Version::Tls12) => &[(Version::Tls12, ResumeBy::SessionId)],
        Some(Version::Tls13) => &[],
    };
    let keys = [
        CertificateKey::Rsa2048,
        CertificateKey::Rsa3072,
        CertificateKey::Rsa4096,
        CertificateKey::Ed25519,
    ];
    let ciphers = [Cipher::Aes256Gcm, Cipher::Chacha20Poly1305];
    let groups = [Group::P256, Group::X25519MlKem768];
    [
        Axis::of(options.keys.as_deref(), BASE.key, &keys, |case, key| case.key = key),
        Axis::of(options.workers.as_deref(), 1, &[2, 4, 6], |case, workers| case.workers = workers),
        Axis::of(options.suites.as_deref(), BASE.offer.cipher, &ciphers, |case, cipher| {
            case.offer.cipher = cipher;
        }),
        Axis::of(options.groups.as_deref(), BASE.offer.group, &groups, |case, group| {
            case.offer.group = group;
        }),
        Axis::of(
            resumption.as_deref(),
            (version, BASE.offer.resume_by),
            other_kinds,
            |case, (version, resume_by)| {
                (case.offer.version, case.offer.resume_by) = (version, resume_by);
            },
        ),
        Axis::of(None, options.http.at_once(), &[], |case, http2| case.offer.http2 = http2),
    ]
}

/// The base case, combined with what the user named.
fn combined(axes: &[Axis]) -> Vec<Case> {
    axes.iter().fold(vec![BASE], |cases, axis| {
        let of_axis = |case| axis.combined.iter().map(move |change| change(case));
        cases.into_iter().flat_map(of_axis).collect()
    })
}

/// One axis at a time away from the base case; which ones depends on the effort.
fn extra(axes: &[Axis], effort: Effort) -> Vec<Case> {
    let base = axes.iter().flat_map(|axis| axis.combined.first());
    let base = base.fold(BASE, |case, change| change(case));
    let keys = axes.get(..1).unwrap_or_default();
    let (left, most) = effort.pick((&[][..], 0), (keys, 1), (axes, usize::MAX));
    let changes = left.iter().flat_map(|axis| &axis.extra).take(most);
    // A group a version does not have was not asked for here, so it is not missed either.
    let is_missed =
        |case: &Case| case.offer.group == base.offer.group || impossible(case).is_none();
    changes.map(|change| change(base)).filter(|case| *case != base && is_missed(case)).collect()
}

/// The first case of every axis.
const BASE: Case = Case {
    workers: 1,
    key: CertificateKey::P256,
    offer: Offer {
        version: Version::Tls13,
        cipher: Cipher::Aes128Gcm,
        group: Group::X25519,
        resume_by: ResumeBy::Ticket,
        http2: None,
    },
};

#[cfg(test)]
mod tests;
