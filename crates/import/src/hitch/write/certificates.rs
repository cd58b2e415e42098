//! The certificates that a frontend shows, in kettle's order: the default first, and of two with the same name the one
//! that hitch takes, the later.

use std::path::PathBuf;

use kettle_config::{Origin, quoted};

use super::Writer;
use crate::hitch::model::{Frontend, PemFile, Setting, Settings};
use crate::openssl::name_hash;
use crate::pattern::fits;

/// A certificate as a frontend shows it.
pub(super) struct Shown {
    path: PathBuf,
    key: PathBuf,
    ocsp: Option<PathBuf>,
    /// `required` or `optional`, and the authorities.
    asked: Option<(String, PathBuf)>,
    origin: Origin,
}

/// Whose a certificate is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Frontend,
    All,
}

impl Writer<'_> {
    pub(super) fn shown(&mut self, frontend: &Frontend) -> Vec<Shown> {
        let own = frontend.pem_files.iter().rev().cloned();
        let mut pem_files: Vec<(PemFile, Owner)> = own.map(|pem| (pem, Owner::Frontend)).collect();
        if frontend.shows_all() {
            let all = self.model.pem_files.iter().rev().cloned();
            let all: Vec<PemFile> = all.chain(self.pem_dir()).collect();
            pem_files.extend(all.into_iter().map(|pem| (pem, Owner::All)));
        }
        if pem_files.is_empty() && self.output.diagnostics.is_empty() {
            let message = format!("no certificate is named for {}", frontend.endpoint);
            let help = Some("write pem-file = \"…\", or name the file as an argument".to_owned());
            self.output.diagnostics.push(frontend.origin.diagnostic(message, help));
        }
        let mut known: Vec<String> = Vec::new();
        pem_files.retain(|(pem, _)| {
            let is_new = !known.contains(&pem.path);
            known.push(pem.path.clone());
            is_new
        });
        let one = |(pem, owner): &(PemFile, Owner)| self.one(frontend, pem, *owner);
        pem_files.iter().map(one).collect()
    }

    fn pem_dir(&mut self) -> Vec<PemFile> {
        let Some(dir) = self.model.settings.text("pem-dir") else { return Vec::new() };
        let folder = self.surroundings.folder().join(&dir.text);
        let mut names = match self.surroundings.files_in(&folder) {
            Ok(names) => names,
            Err(error) => {
                let message = format!("the folder {} cannot be read: {error}", folder.display());
                let diagnostic = dir.origin.diagnostic(message, None);
                if !self.output.diagnostics.contains(&diagnostic) {
                    self.output.diagnostics.push(diagnostic);
                }
                return Vec::new();
            }
        };
        names.sort_unstable();
        let glob = self.model.settings.text("pem-dir-glob");
        let fits = |name: &String| glob.is_none_or(|glob| fits(&glob.text, name));
        let pem_file = |name: String| PemFile {
            path: format!("{}/{name}", dir.text.trim_end_matches('/')),
            origin: dir.origin.clone(),
            settings: Settings::default(),
        };
        names.into_iter().filter(fits).map(pem_file).collect()
    }

    fn one(&self, frontend: &Frontend, pem: &PemFile, owner: Owner) -> Shown {
        let folder = self.surroundings.folder();
        let path = folder.join(&pem.path);
        let key =
            pem.settings.text("private-key").map_or(path.clone(), |key| folder.join(&key.text));
        let ocsp = match pem.settings.text("ocsp-resp-file") {
            Some(file) => Some(folder.join(&file.text)),
            None => self.staple_in_dir(&pem.path),
        };
        // A frontend says nothing of certificates that are everybody's: the clients they ask, they ask everywhere.
        let of_frontend = Some(&frontend.settings).filter(|_| owner == Owner::Frontend);
        let above = || of_frontend.into_iter().chain([&self.model.settings]);
        let of_pem = pem.settings.text("client-verify");
        let verify = of_pem.or_else(|| above().find_map(|it| it.text("client-verify")));
        // Authorities alone change nothing.
        let authorities = of_pem.and_then(|_| pem.settings.text("client-verify-ca"));
        let authorities =
            authorities.or_else(|| above().find_map(|it| it.text("client-verify-ca")));
        let asked = verify.filter(|verify| verify.text != "none").zip(authorities);
        let asked = asked
            .map(|(verify, ca): (&Setting, &Setting)| (verify.text.clone(), folder.join(&ca.text)));
        Shown { path, key, ocsp, asked, origin: pem.origin.clone() }
    }

    /// hitch names a response by the MD5 of its certificate's path.
    fn staple_in_dir(&self, path: &str) -> Option<PathBuf> {
        let dir = self.model.settings.text("ocsp-dir").map_or(OCSP_DIR, |dir| dir.text.as_str());
        let file = self.surroundings.folder().join(dir).join(name_hash(path));
        self.surroundings.is_file(&file).then_some(file)
    }

    pub(super) fn certificate(&mut self, shown: &Shown) {
        let origin = Some(&shown.origin);
        let path = |path: &PathBuf| quoted(&path.display().to_string());
        self.output.text.table("[[listener.certificate]]", origin);
        self.output.text.set("chain", path(&shown.path), origin);
        self.output.text.set("key", path(&shown.key), origin);
        if let Some(ocsp) = &shown.ocsp {
            self.output.text.set("ocsp", path(ocsp), origin);
        }
        if let Some((mode, roots)) = &shown.asked {
            self.output.text.table("[listener.certificate.client_auth]", origin);
            self.output.text.set("mode", quoted(mode), origin);
            self.output.text.set("roots", path(roots), origin);
        }
    }
}

/// The folder in which hitch looks if nothing says otherwise.
const OCSP_DIR: &str = "/var/lib/hitch/";
