//! The machines that packages are for, in the words of each kind of package. Packages are made on such a machine: the programs write
//! their own manual pages meanwhile, and the image holds the machine's libraries.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::files::at;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    Amd64,
    Arm64,
}

impl Architecture {
    /// Reads the value of `--arch`, as Debian writes it.
    pub fn parse(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|it| it.debian() == word);
        known.ok_or_else(|| format!("`{word}` is neither amd64 nor arm64"))
    }

    /// The one of this machine, or the reason why nothing can be packaged here: `asked` is another.
    pub fn of_this_machine(asked: Option<Self>) -> Result<Self, String> {
        Self::of(std::env::consts::ARCH, asked)
    }

    fn of(machine: &str, asked: Option<Self>) -> Result<Self, String> {
        let here = Self::ALL.into_iter().find(|it| it.rpm() == machine);
        let here = here.ok_or_else(|| {
            format!("packages are made for amd64 and arm64, and this machine is {machine}")
        })?;
        match asked.filter(|asked| *asked != here) {
            Some(asked) => Err(format!(
                "packages for {0} are made on {0}, and this machine is {1}: run the command there",
                asked.debian(),
                here.debian()
            )),
            None => Ok(here),
        }
    }

    /// The name in Debian and in container images.
    pub fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The name in rpm packages, in the kernel and in Rust.
    pub fn rpm(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    pub fn target(self) -> String {
        format!("{}-unknown-linux-gnu", self.rpm())
    }

    /// Refuses a program that was built for another machine.
    pub fn check(self, program: &Path) -> Result<(), String> {
        let mut header = [0; 20];
        let read = File::open(program).and_then(|mut file| file.read_exact(&mut header));
        read.map_err(|error| at(program, &error))?;
        match header {
            // ELF with 64 bits, the lower byte first; `e_machine` is behind `e_type`.
            [0x7f, b'E', b'L', b'F', 2, 1, .., low, high]
                if u16::from_le_bytes([low, high]) == self.elf_machine() =>
            {
                Ok(())
            }
            _ => Err(format!("{} is no program for {}", program.display(), self.debian())),
        }
    }

    /// `EM_X86_64` and `EM_AARCH64` of elf.h.
    fn elf_machine(self) -> u16 {
        match self {
            Self::Amd64 => 62,
            Self::Arm64 => 183,
        }
    }

    const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_made_on_the_machine_they_are_for() {
        let arm64 = Architecture::parse("arm64").unwrap();
        assert_eq!(Architecture::of("aarch64", None), Ok(arm64));
        assert_eq!(Architecture::of("aarch64", Some(arm64)), Ok(arm64));
        let refused = Architecture::of("x86_64", Some(arm64)).unwrap_err();
        assert!(refused.starts_with("packages for arm64 are made on arm64"), "{refused}");
        assert!(Architecture::of("riscv64", None).is_err());
        assert!(Architecture::parse("aarch64").is_err());
    }

    #[test]
    fn a_program_for_another_machine_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("kettle");
        let header = |machine: u8| {
            let mut header = vec![0; 64];
            header[..6].copy_from_slice(b"\x7fELF\x02\x01");
            header[18] = machine;
            header
        };
        std::fs::write(&program, header(183)).unwrap();
        assert_eq!(Architecture::Arm64.check(&program), Ok(()));
        assert!(Architecture::Amd64.check(&program).is_err_and(|it| it.contains("amd64")));
        for no_program in [&b"#!/bin/sh"[..], b"", &[0; 64]] {
            std::fs::write(&program, no_program).unwrap();
            assert!(Architecture::Amd64.check(&program).is_err());
        }
        let own = std::env::current_exe().unwrap();
        let here = Architecture::of_this_machine(None).unwrap();
        assert_eq!(here.check(&own), Ok(()));
    }
}
