//! seccomp(2): which system calls may be made. Refusing is by number, and by arguments that are plain numbers: what a
//! pointer leads to is not seen.
//!
//! A call that is not on a process's list does not exist for it: libraries know what to do on an
//! older kernel (`ENOSYS`), and a new C library must not end a server. A call that only an attacker
//! asks for, such as executing a program, ends the process.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use super::{SandboxError, gain_nothing};

/// Which process is confined to its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confined {
    /// Accepts, serves, reloads, writes its log.
    Server,
    /// Reads files and binds sockets for a server.
    Keeper,
    /// Asks authorities for certificates and keeps them. It listens nowhere.
    Issuer,
}

/// Tells whether this kernel can refuse system calls.
///
/// # Errors
/// Why it cannot.
pub fn seccomp_here() -> Result<(), SandboxError> {
    let action = libc::SECCOMP_RET_KILL_PROCESS;
    let operation = libc::SECCOMP_GET_ACTION_AVAIL;
    // SAFETY: the pointer is to a number of ours, which the call only reads.
    let status = unsafe { libc::syscall(libc::SYS_seccomp, operation, 0, &raw const action) };
    if status == 0 {
        return Ok(());
    }
    Err(SandboxError::NotHere(match io::Error::last_os_error().raw_os_error() {
        Some(libc::ENOSYS | libc::EINVAL) => {
            "this kernel has no seccomp filters (CONFIG_SECCOMP_FILTER)"
        }
        Some(libc::EOPNOTSUPP) => "this kernel's seccomp is too old (Linux 4.14)",
        _ => "what this container allows does not include seccomp",
    }))
}

/// Takes all system calls that are not on its list from this process, in all its threads, for good. One that `makes_sockets`
/// gives files of Unix sockets their rights.
///
/// # Errors
/// If the kernel cannot do it, or this processor's calls are not known.
pub fn confine_calls(confined: Confined, makes_sockets: bool) -> Result<(), SandboxError> {
    seccomp_here()?;
    gain_nothing()?;
    // Both are asked at each call, and the stricter answer holds. Where it is yes whatever the arguments, Linux 5.11 and
    // later know that by the number alone. The second one no longer lets a third be added.
    for program in [ending()?, listed(confined, makes_sockets)?] {
        install(&program)?;
    }
    Ok(())
}

fn install(program: &BpfProgram) -> Result<(), SandboxError> {
    let len = u16::try_from(program.len()).map_err(refused)?;
    let filter = program.as_ptr().cast_mut().cast();
    let described = libc::sock_fprog { len, filter };
    // Linux before 5.16 else makes all code of a filtered process slower, for the sake of programs that run others' code.
    let flags = libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    let operation = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the pointer is to a description of `program`, of which the kernel makes a copy before the call returns.
    let status =
        unsafe { libc::syscall(libc::SYS_seccomp, operation, flags, &raw const described) };
    match status {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error().into()),
        thread => Err(SandboxError::Refused(format!("thread {thread} has other filters"))),
    }
}

fn refused(error: impl ToString) -> SandboxError {
    SandboxError::Refused(error.to_string())
}

type CallRules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Lets what is on the list, and says of everything else that there is no such call.
fn listed(confined: Confined, makes_sockets: bool) -> Result<BpfProgram, SandboxError> {
    let mut rules = always(BOTH);
    rules.extend(always(BOTH_ON_X86));
    rules.extend(restricted(BOTH_RESTRICTED)?);
    match confined {
        Confined::Keeper => rules.extend(restricted(OF_KEEPER_RESTRICTED)?),
        Confined::Server | Confined::Issuer => {
            rules.extend(always(OF_SERVER));
            rules.extend(always(OF_SERVER_ON_X86));
            rules.extend(restricted(OF_SERVER_RESTRICTED)?);
        }
    }
    if confined == Confined::Issuer {
        rules.retain(|call, _| !OF_LISTENING.contains(call));
    }
    if makes_sockets {
        rules.extend(always(OF_MAKING_SOCKETS));
        // The keeper makes none itself but to ask whether somebody answers.
        if confined == Confined::Keeper {
            rules.extend(always(OF_KEEPER_MAKING_SOCKETS));
            rules.extend(restricted(&[(libc::SYS_socket, 0, ALL_BITS, &[libc::AF_UNIX as u64])])?);
        }
    }
    let missing = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    program(rules, missing, SeccompAction::Allow)
}

/// Ends the process that asks for one of these.
fn ending() -> Result<BpfProgram, SandboxError> {
    program(always(NEVER), SeccompAction::Allow, SeccompAction::KillProcess)
}

fn program(
    rules: CallRules,
    otherwise: SeccompAction,
    then: SeccompAction,
) -> Result<BpfProgram, SandboxError> {
    let architecture = std::env::consts::ARCH.try_into().map_err(refused)?;
    let filter = SeccompFilter::new(rules, otherwise, then, architecture).map_err(refused)?;
    BpfProgram::try_from(filter).map_err(refused)
}

fn always(calls: &[c_long]) -> CallRules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

/// A call that is allowed where its argument of this index, looked at through the mask, is one of the values.
type Restricted<'l> = (c_long, u8, u64, &'l [u64]);

fn restricted(calls: &[Restricted<'_>]) -> Result<CallRules, SandboxError> {
    let rule = |index: u8, mask: u64, value: u64| {
        let masked = SeccompCmpOp::MaskedEq(mask);
        let condition = SeccompCondition::new(index, SeccompCmpArgLen::Dword, masked, value)?;
        SeccompRule::new(vec![condition])
    };
    let rules = |(call, index, mask, values): &Restricted<'_>| {
        let rules: Result<Vec<_>, _> =
            values.iter().map(|value| rule(*index, *mask, *value)).collect();
        Ok((*call, rules.map_err(refused)?))
    };
    calls.iter().map(rules).collect()
}

/// Memory, threads, clocks, signals, and reading what is open: what every program of Rust and its C library asks for.
const BOTH: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_fcntl,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_tgkill,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_uname,
    libc::SYS_ppoll,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_bind,
    libc::SYS_getsockopt,
    libc::SYS_getsockname,
    libc::SYS_getrusage,
];

/// No memory is both written and executed, and none that was written becomes executable.
const BOTH_RESTRICTED: &[Restricted<'_>] = &[
    (libc::SYS_mmap, 2, WRITE_AND_EXECUTE, &[0, libc::PROT_WRITE as u64, libc::PROT_EXEC as u64]),
    (libc::SYS_mprotect, 2, libc::PROT_EXEC as u64, &[0]),
    (
        libc::SYS_prctl,
        0,
        ALL_BITS,
        &[
            libc::PR_SET_NAME as u64,
            libc::PR_GET_NAME as u64,
            libc::PR_GET_DUMPABLE as u64,
            // The names that the C library gives to memory it asks for.
            libc::PR_SET_VMA as u64,
        ],
    ),
];

/// Sockets, events, files that are made, and what answers questions about this process.
const OF_SERVER: &[c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_copy_file_range,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_flock,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    #[cfg(not(target_arch = "riscv64"))]
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_utimensat,
    libc::SYS_umask,
    libc::SYS_pipe2,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_eventfd2,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_pselect6,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_socketpair,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_getpeername,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_set_tid_address,
    libc::SYS_get_robust_list,
    libc::SYS_membarrier,
    libc::SYS_mincore,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_getcpu,
    libc::SYS_getppid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_capget,
    libc::SYS_prlimit64,
    libc::SYS_sysinfo,
    libc::SYS_times,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigpending,
    libc::SYS_close_range,
];

/// The calls of processes to which others connect.
const OF_LISTENING: &[c_long] = &[
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_tee,
];

/// New threads and no processes; sockets of the Internet, of this machine, and for questions to the kernel; questions to
/// sockets and terminals, but no words put into their mouths.
#[allow(clippy::unnecessary_cast, reason = "requests of ioctl have another type with musl")]
const OF_SERVER_RESTRICTED: &[Restricted<'_>] = &[
    (libc::SYS_clone, 0, libc::CLONE_THREAD as u64, &[libc::CLONE_THREAD as u64]),
    (
        libc::SYS_socket,
        0,
        ALL_BITS,
        &[
            libc::AF_UNIX as u64,
            libc::AF_INET as u64,
            libc::AF_INET6 as u64,
            libc::AF_NETLINK as u64,
        ],
    ),
    (
        libc::SYS_ioctl,
        1,
        ALL_BITS,
        &[
            libc::FIONBIO as u64,
            libc::FIONREAD as u64,
            libc::FIOCLEX as u64,
            libc::TIOCOUTQ as u64,
            libc::TIOCGWINSZ as u64,
            libc::TCGETS as u64,
        ],
    ),
];

/// Older forms of the same, which newer processors' kernels have never had, and musl uses.
#[cfg(target_arch = "x86_64")]
const BOTH_ON_X86: &[c_long] = &[
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_poll,
    libc::SYS_arch_prctl,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const BOTH_ON_X86: &[c_long] = &[];

#[cfg(target_arch = "x86_64")]
const OF_SERVER_ON_X86: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_mkdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_pipe,
    libc::SYS_dup2,
    libc::SYS_select,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_create,
    libc::SYS_eventfd,
    libc::SYS_getrlimit,
];
#[cfg(not(target_arch = "x86_64"))]
const OF_SERVER_ON_X86: &[c_long] = &[];

/// It opens for reading, and makes nothing.
const OF_KEEPER_RESTRICTED: &[Restricted<'_>] = &[
    (libc::SYS_openat, 2, WRITING, &[0]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, WRITING, &[0]),
];

/// The rights of a Unix socket's file.
const OF_MAKING_SOCKETS: &[c_long] = &[libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchownat];

/// Its place.
const OF_KEEPER_MAKING_SOCKETS: &[c_long] = &[
    libc::SYS_listen,
    libc::SYS_connect,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
];

/// The calls that nothing in these processes asks for, whatever library does it: other programs,
/// other processes, other machines' ways into this one.
const NEVER: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
];

const WRITE_AND_EXECUTE: u64 = (libc::PROT_WRITE | libc::PROT_EXEC) as u64;
const ALL_BITS: u64 = u32::MAX as u64;
const WRITING: u64 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u64;
