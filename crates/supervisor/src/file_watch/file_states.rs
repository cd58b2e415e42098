//! The state of files at one moment, by which a change shows.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kettle_config::Config;
use kettle_kernel::file_stamp::FileStamp;
use kettle_kernel::keeper;

/// The state of files at one moment, through all symbolic links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileStates(Vec<(PathBuf, FileState)>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum FileState {
    There(FileStamp),
    /// Nothing can be said of it, for this reason.
    Hidden(ErrorKind),
}

impl FileStates {
    /// At the files of a configuration that wants them watched, and at the certificates that are fetched, whoever fetches them.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let paths = if config.tls.watch { config.watched_files() } else { Vec::new() };
        let fetched = config.wanted_certificates().filter_map(|it| it.files(&config.server));
        let fetched = fetched.flat_map(|it| [it.chain.value, it.key.value]);
        Self::at(paths.into_iter().map(Path::to_owned).chain(fetched))
    }

    pub(super) fn at(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let state = |path: PathBuf| {
            let state = FileState::of(&path);
            (path, state)
        };
        Self(paths.into_iter().map(state).collect())
    }

    /// At the same files now.
    pub(super) fn again(&self) -> Self {
        Self::at(self.0.iter().map(|(path, _)| path.clone()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The files that were otherwise in an earlier look at the same.
    pub(super) fn changed_since(&self, before: &Self) -> Vec<PathBuf> {
        let both = self.0.iter().zip(&before.0);
        both.filter(|(now, before)| now != before).map(|((path, _), _)| path.clone()).collect()
    }
}

impl FileState {
    fn of(path: &Path) -> Self {
        let metadata = path.metadata().or_else(|error| match error.kind() {
            ErrorKind::PermissionDenied => keeper::open(path)?.metadata(),
            _ => Err(error),
        });
        match metadata {
            Ok(metadata) => Self::There(FileStamp::of(&metadata)),
            Err(error) => Self::Hidden(error.kind()),
        }
    }
}
