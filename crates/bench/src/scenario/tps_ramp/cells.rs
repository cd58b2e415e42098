//! Which servers a ramp is run on, and how each is set up: the base case, and one axis at a time away from it.
//!
//! All axes crossed would be thousands of ramps. Axes the user names are crossed, because the user says how many.

use std::collections::BTreeSet;

use kettle_loadgen::offer::{Offer, ResumeBy};
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

use crate::peers::subject::{Key, Path, Program, Role, Subject};
use crate::results::{Point, Value};
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

/// How a server is set up, but for what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub workers: usize,
    pub key: Key,
    /// TLS, one choice each.
    pub offer: Offer,
}

/// What is to be measured, and what cannot be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    /// In the order in which they are measured: subjects of one case follow each other.
    pub cells: Vec<Cell>,
    /// What was asked for and does not exist, with the reason.
    pub refused: Vec<(String, String)>,
}

impl Cells {
    /// Chooses by the options, for a server that may have so many processors.
    #[must_use]
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
        cells
    }

    fn refuse_workers(&mut self, workers: usize, processors: usize) {
        let what = format!("{workers} workers");
        let why = format!(
            "the server may have {processors} of this machine's processors; more workers than processors would measure the \
             scheduler"
        );
        if !self.refused.iter().any(|(refused, _)| *refused == what) {
            self.refused.push((what, why));
        }
    }
}

impl Cell {
    /// Where on the axes the ramp with this number of transactions per session lies.
    #[must_use]
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
            for path in paths(options, program, role) {
                let subject = Subject { program, path, role };
                let exists = role == Role::Terminator || has_bodies(program);
                if exists && !subjects.contains(&subject) {
                    subjects.push(subject);
                }
            }
        }
    }
    subjects
}

fn has_bodies(program: Program) -> bool {
    matches!(program, Program::Kettle | Program::Nginx | Program::Haproxy)
}

/// A kilobyte is not worth a move into the kernel, so without a wish a server encrypts as it does by itself.
fn paths(options: &Options, program: Program, role: Role) -> Vec<Path> {
    match (role, &options.paths, program) {
        (_, None, Program::Kettle) => vec![Path::Auto],
        (Role::Files, Some(paths), _) | (_, Some(paths), Program::Kettle) => paths.clone(),
        // Of terminators, kettle alone chooses.
        _ => vec![Path::User],
    }
}

/// The cases with their numbers of transactions per session.
fn cases(options: &Options, refused: &mut Vec<(String, String)>) -> Vec<(Case, Vec<u32>)> {
    let axes = Axes::of(options);
    let per_session = options.per_session.clone().unwrap_or(options.effort.pick(
        vec![1, 4],
        vec![1, 4, 8, 80],
        vec![1, 4, 8, 80],
    ));
    let few: Vec<u32> = match &options.per_session {
        Some(asked) => asked.clone(),
        None => vec![1, 4],
    };
    let mut cases: Vec<(Case, Vec<u32>)> = Vec::new();
    let mut add = |case: Case, per_session: &[u32]| {
        if let Some(why) = impossible(&case) {
            let what = format!(
                "TLS {}, {}, {}",
                case.offer.version.word(),
                case.offer.group.word(),
                case.offer.resume_by.word()
            );
            if !refused.iter().any(|(refused, _)| *refused == what) {
                refused.push((what, why.to_owned()));
            }
        } else if !cases.iter().any(|(other, _)| *other == case) {
            cases.push((case, possible(case, per_session)));
        }
    };
    for case in axes.crossed() {
        add(case, &per_session);
    }
    for case in axes.aside(options.effort) {
        add(case, &few);
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

/// The values of each axis, the base case's first, and whether the user named them.
struct Axes {
    workers: Axis<usize>,
    keys: Axis<Key>,
    ciphers: Axis<Cipher>,
    groups: Axis<Group>,
    resumption: Axis<(Version, ResumeBy)>,
}

struct Axis<T> {
    /// What is crossed with all other axes; at least one.
    crossed: Vec<T>,
    /// What is tried one at a time beside the base case.
    aside: Vec<T>,
}

impl<T: Copy> Axis<T> {
    fn of(named: Option<&Vec<T>>, base: T, aside: &[T]) -> Self {
        match named {
            Some(named) if !named.is_empty() => Self { crossed: named.clone(), aside: Vec::new() },
            _ => Self { crossed: vec![base], aside: aside.to_vec() },
        }
    }

    fn base(&self) -> Option<T> {
        self.crossed.first().copied()
    }
}

impl Axes {
    fn of(options: &Options) -> Self {
        let version = options.version.unwrap_or(Version::Tls13);
        let resumption = options.resume.as_ref().map(|kinds| {
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
        Self {
            workers: Axis::of(options.workers.as_ref(), 1, &[2, 4, 6]),
            keys: Axis::of(
                options.keys.as_ref(),
                Key::P256,
                &[Key::Rsa2048, Key::Rsa3072, Key::Rsa4096, Key::Ed25519],
            ),
            ciphers: Axis::of(
                options.suites.as_ref(),
                Cipher::Aes128Gcm,
                &[Cipher::Aes256Gcm, Cipher::Chacha20Poly1305],
            ),
            groups: Axis::of(
                options.groups.as_ref(),
                Group::X25519,
                &[Group::P256, Group::X25519MlKem768],
            ),
            resumption: Axis::of(resumption.as_ref(), (version, ResumeBy::Ticket), other_kinds),
        }
    }

    /// The base case, crossed with what the user named.
    fn crossed(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for workers in &self.workers.crossed {
            for key in &self.keys.crossed {
                for cipher in &self.ciphers.crossed {
                    for group in &self.groups.crossed {
                        for (version, resume_by) in &self.resumption.crossed {
                            let offer = Offer {
                                version: *version,
                                cipher: *cipher,
                                group: *group,
                                resume_by: *resume_by,
                                http2: None,
                            };
                            cases.push(Case { workers: *workers, key: *key, offer });
                        }
                    }
                }
            }
        }
        cases
    }

    /// One axis at a time away from the base case; which ones depends on the effort.
    fn aside(&self, effort: Effort) -> Vec<Case> {
        let Some(base) = self.base() else {
            return Vec::new();
        };
        let keys = match effort {
            Effort::Quick => return Vec::new(),
            Effort::Normal => self.keys.aside.get(..1).unwrap_or_default(),
            Effort::Thorough => &self.keys.aside,
        };
        let mut cases: Vec<Case> = keys.iter().map(|key| Case { key: *key, ..base }).collect();
        if effort == Effort::Thorough {
            let with = |offer| Case { offer, ..base };
            let Offer { version, resume_by, .. } = base.offer;
            cases.extend(
                self.workers.aside.iter().map(|workers| Case { workers: *workers, ..base }),
            );
            cases.extend(
                self.ciphers
                    .aside
                    .iter()
                    .map(|cipher| with(Offer { cipher: *cipher, ..base.offer })),
            );
            // A group a version does not have was not asked for here, so it is not missed either.
            let groups =
                self.groups.aside.iter().map(|group| Offer { group: *group, ..base.offer });
            cases.extend(groups.map(with).filter(|case| impossible(case).is_none()));
            let kinds = self.resumption.aside.iter().filter(|kind| **kind != (version, resume_by));
            cases.extend(kinds.map(|(version, resume_by)| {
                with(Offer { version: *version, resume_by: *resume_by, ..base.offer })
            }));
        }
        cases
    }

    fn base(&self) -> Option<Case> {
        let (version, resume_by) = self.resumption.base()?;
        let (cipher, group) = (self.ciphers.base()?, self.groups.base()?);
        let offer = Offer { version, cipher, group, resume_by, http2: None };
        Some(Case { workers: self.workers.base()?, key: self.keys.base()?, offer })
    }
}

#[cfg(test)]
mod tests;
