//! A store that tests may open again, and short questions to it.

use std::ops::Deref;

use super::*;

/// A store in a folder of its own.
pub(in crate::store) struct TestStore {
    store: Arc<Store>,
    folder: TempDir,
}

impl TestStore {
    pub(in crate::store) fn new() -> Self {
        Self::with(1 << 20, 1 << 18)
    }

    pub(in crate::store) fn with(bytes_max: u64, object_bytes_max: u64) -> Self {
        let folder = TempDir::new().unwrap();
        let limits = StoreSettings { bytes_max, object_bytes_max, ..settings(folder.path()) };
        Self { store: Arc::new(Store::open(limits).unwrap()), folder }
    }

    /// Makes it one of a file system where each file has a name.
    pub(in crate::store) fn without_unnamed_files(mut self) -> Self {
        Arc::get_mut(&mut self.store).unwrap().has_unnamed_files = false;
        self
    }

    /// Ends the store and begins its next life.
    pub(in crate::store) fn reopened(self) -> Self {
        let settings = StoreSettings {
            directory: self.folder().to_owned(),
            bytes_max: self.bytes_max(),
            object_bytes_max: self.object_bytes_max(),
        };
        drop(self.store);
        Self { store: Arc::new(Store::open(settings).unwrap()), folder: self.folder }
    }

    pub(in crate::store) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(in crate::store) fn files(&self) -> Vec<PathBuf> {
        files(self.folder())
    }

    pub(in crate::store) fn path(&self, name: Name) -> PathBuf {
        self.folder().join(self.layout.path(name))
    }

    pub(in crate::store) fn head(&self, key: &str) -> ObjectHead {
        head(self, key)
    }

    /// Keeps a short object under a key.
    pub(in crate::store) fn keep_short(&self, key: &str) -> Reference {
        self.keep(&self.head(key), b"body").unwrap()
    }

    pub(in crate::store) fn has(&self, key: &str) -> bool {
        self.find(key, &|_| Vec::new()).unwrap().is_some()
    }
}

impl Deref for TestStore {
    type Target = Arc<Store>;

    fn deref(&self) -> &Self::Target {
        &self.store
    }
}
