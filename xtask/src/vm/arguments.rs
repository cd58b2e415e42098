//! The command line of the `vm` commands.

use std::path::PathBuf;
use std::time::Duration;

use super::guest::Guest;
use super::image::Image;
use super::kernel::Kernel;
use super::qemu::Machine;
use crate::checkout;
use crate::files::{self, at};

pub struct Arguments {
    pub kernel: Kernel,
    pub image: Image,
    pub machine: Machine,
    pub files: Vec<PathBuf>,
    /// Variables for the command.
    pub environment: Vec<(String, String)>,
    /// The folder for `/out`.
    pub out: PathBuf,
    pub limit: Duration,
    /// True to download anew what is in the cache.
    pub refresh: bool,
    pub names: Vec<String>,
    pub command: Vec<String>,
}

impl Arguments {
    /// Reads the words after the command's name.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let mut arguments = Self {
            kernel: Kernel::Linux7,
            image: Image::Test,
            machine: Machine::default(),
            files: Vec::new(),
            environment: Vec::new(),
            out: checkout::target_folder().join("vm/out"),
            limit: Duration::from_secs(DEFAULT_LIMIT_SECONDS),
            refresh: false,
            names: Vec::new(),
            command: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--" => {
                    arguments.command = words.cloned().collect();
                    break;
                }
                "--icount" => arguments.machine.icount = true,
                "--no-erms" => arguments.machine.erms = false,
                "--refresh" => arguments.refresh = true,
                option if option.starts_with('-') => {
                    let value = words
                        .next()
                        .ok_or_else(|| format!("{option} is unknown or lacks its value"))?;
                    arguments.set(option, value)?;
                }
                name => arguments.names.push(name.to_owned()),
            }
        }
        Ok(arguments)
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "--kernel" => self.kernel = Kernel::parse(value)?,
            "--image" => self.image = Image::parse(value)?,
            "--file" => self.files.push(PathBuf::from(value)),
            "--out" => self.out = PathBuf::from(value),
            "--append" => value.clone_into(&mut self.machine.append),
            "--cpus" => self.machine.cpus = number(option, value)?,
            "--memory" => self.machine.memory_mib = number(option, value)?,
            "--timeout" => self.limit = Duration::from_secs(number(option, value)?.into()),
            "--env" => {
                let (name, value) = value.split_once('=').ok_or("--env wants NAME=VALUE")?;
                self.environment.push((name.to_owned(), value.to_owned()));
            }
            _ => return Err(format!("unknown option {option}")),
        }
        Ok(())
    }

    pub fn into_guest(self) -> Result<Guest, String> {
        let named = |path: PathBuf| {
            let path = path.canonicalize().map_err(|error| at(&path, &error))?;
            let name = files::name(&path);
            Ok((path, name))
        };
        Ok(Guest {
            kernel: self.kernel,
            image: self.image,
            machine: self.machine,
            files: self.files.into_iter().map(named).collect::<Result<_, String>>()?,
            environment: self.environment,
            command: self.command,
            out: self.out,
            limit: self.limit,
        })
    }
}

fn number(option: &str, value: &str) -> Result<u32, String> {
    value.parse().map_err(|_| format!("{option} wants a number, not `{value}`"))
}

const DEFAULT_LIMIT_SECONDS: u64 = 600;

#[cfg(test)]
mod tests;
