//! Landlock (Linux 5.13, landlock(7)): what may be opened, by folders. A file that is open stays
//! open, and looking at names, sizes and links is never refused.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::{SandboxError, gain_nothing, refuse_other_threads};

/// The files that may still be used. A folder stands for all that is below it; what is not there is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The paths that may be read and listed.
    pub read: Vec<PathBuf>,
    /// The paths that may be written besides, and folders in which files may be made, renamed and
    /// removed.
    pub write: Vec<PathBuf>,
    /// Folders in which files may be removed.
    pub remove: Vec<PathBuf>,
    /// Folders in which Unix sockets may be made, renamed and removed.
    pub sockets: Vec<PathBuf>,
    /// True if TCP connections may be made (to be forbidden since Linux 6.7).
    pub connect: bool,
}

/// The version of Landlock that this kernel has.
///
/// # Errors
/// Why it has none.
pub fn landlock_version() -> Result<u32, SandboxError> {
    // SAFETY: with this flag the call takes no attributes, reads nothing and makes nothing.
    let version = unsafe {
        let no_attributes = std::ptr::null::<()>();
        let bytes = 0_usize;
        libc::syscall(libc::SYS_landlock_create_ruleset, no_attributes, bytes, VERSION_FLAG)
    };
    u32::try_from(version).map_err(|_| {
        SandboxError::NotHere(match io::Error::last_os_error().raw_os_error() {
            Some(libc::EOPNOTSUPP) => "Landlock is built in and not turned on (`lsm=` at boot)",
            Some(libc::ENOSYS) => {
                "this kernel has no Landlock (Linux 5.13, CONFIG_SECURITY_LANDLOCK)"
            }
            _ => "what this container allows does not include Landlock",
        })
    })
}

/// Forbids all that is not listed: opening, making and removing files, and executing any. This process gains no rights by
/// executing a program either, and since Linux 6.12 sends no signals to others than itself.
///
/// # Errors
/// If this process has other threads, which would go on as they are, or the kernel cannot do it.
pub fn confine_files(files: &Files) -> Result<(), SandboxError> {
    refuse_other_threads()?;
    gain_nothing()?;
    if landlock_version()? < VERSION_MIN {
        return Err(SandboxError::NotHere(
            "this kernel's Landlock would forbid all renaming (Linux 5.19 does not)",
        ));
    }
    match restrict(files) {
        Ok(RulesetStatus::NotEnforced) => Err(SandboxError::NotHere("nothing was enforced")),
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => Ok(()),
        Err(error) => Err(SandboxError::Refused(error.to_string())),
    }
}

pub(super) fn restrict(files: &Files) -> Result<RulesetStatus, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let of_files = AccessFs::WriteFile | AccessFs::Truncate;
    let in_folders = AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::MakeSym
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer;
    let mut asked =
        Ruleset::default().handle_access(AccessFs::from_all(ABI_KNOWN))?.scope(Scope::Signal)?;
    if !files.connect {
        asked = asked.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut made = asked.create()?;
    made = add(made, &files.read, read)?;
    made = add(made, &files.write, read | of_files | in_folders)?;
    made = add(made, &files.remove, AccessFs::RemoveFile.into())?;
    made = add(made, &files.sockets, AccessFs::MakeSock | AccessFs::RemoveFile)?;
    Ok(made.restrict_self()?.ruleset)
}

fn add(
    mut made: RulesetCreated,
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    for path in paths {
        // A path that is not there cannot be opened, and what this user may not reach neither.
        let Ok(opened) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(ABI_KNOWN) };
        made = made.add_rule(PathBeneath::new(opened, access))?;
    }
    Ok(made)
}

/// The rights that are forbidden unless allowed: rights that later versions know stay as they
/// are, for each is a decision.
const ABI_KNOWN: ABI = ABI::V5;

/// The first version refuses to rename and link from one folder to another, whatever the rules say.
const VERSION_MIN: u32 = 2;

/// `LANDLOCK_CREATE_RULESET_VERSION`
const VERSION_FLAG: u32 = 1;
