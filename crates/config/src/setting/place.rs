//! Paths of files and folders. Relative ones start from the configuration file's folder.

use std::fmt;
use std::path::PathBuf;

use toml::de::DeValue;

use super::quote::quoted;
use super::section::{WithPlace, located};
use super::{DefaultText, ValueShape, ValueType};
use crate::diagnostic::Help;
use crate::read::{Item, Reader};

fn read_path(item: &Item<'_>, reader: &mut Reader<'_>, is_log: bool) -> Option<PathBuf> {
    let Some(text) = item.as_str() else {
        let help = match item.value() {
            DeValue::Boolean(false) => quoted("off"),
            DeValue::Boolean(true) => quoted("stdout"),
            _ => ValueShape::Path.example(),
        };
        let help = if is_log { help } else { ValueShape::Path.example() };
        reader.wrong_type(item, "a path", Help::write(help));
        return None;
    };
    let mistake = match text {
        "" => Some(("it is empty", ValueShape::Path.example())),
        _ if text.contains('\0') => {
            Some(("no path holds a NUL character", quoted(&text.replace('\0', ""))))
        }
        _ if text.starts_with("~/") => {
            Some(("`~` is not expanded", quoted(&text.replacen('~', "/home/NAME", 1))))
        }
        _ => None,
    };
    if let Some((why, help)) = mistake {
        let message = format!("`{}` takes a path: {why}", item.name());
        reader.report(item, message, Help::write(help));
        return None;
    }
    Some(reader.resolve(text))
}

/// A path without a default, for optional settings.
pub(crate) fn path() -> PathSetting {
    PathSetting { default: "" }
}

pub(crate) fn plain_path(default: &'static str) -> PathSetting {
    PathSetting { default }
}

pub(crate) struct PathSetting {
    default: &'static str,
}

impl ValueType for PathSetting {
    type Value = PathBuf;

    fn default_value(&self) -> PathBuf {
        PathBuf::from(self.default)
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Path
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(quoted(self.default))
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<PathBuf> {
        read_path(item, reader, false)
    }
}

/// A path that keeps its place, because what it leads to is looked at later.
pub(crate) fn located_path() -> WithPlace<PathSetting> {
    located(path())
}

/// The target of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum LogTarget {
    /// Nowhere.
    #[default]
    Off,
    /// Appended to this file, which `kettle ctl reopen` opens anew after a rotation.
    Path(PathBuf),
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl fmt::Display for LogTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => formatter.write_str("off"),
            Self::Path(path) => path.display().fmt(formatter),
            Self::Stdout => formatter.write_str("stdout"),
            Self::Stderr => formatter.write_str("stderr"),
        }
    }
}

/// The target of a log; `"off"` is no log.
pub(crate) fn log_target() -> LogTargetKind {
    LogTargetKind
}

pub(crate) struct LogTargetKind;

impl ValueType for LogTargetKind {
    type Value = LogTarget;

    fn default_value(&self) -> LogTarget {
        LogTarget::Off
    }

    fn shape(&self) -> ValueShape {
        let words = vec![
            ("stdout", "Standard output."),
            ("stderr", "Standard error."),
            ("off", "No access log."),
        ];
        ValueShape::Either(Box::new(ValueShape::Word(words)), Box::new(ValueShape::Path))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(quoted("off"))
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<LogTarget> {
        match item.as_str() {
            Some("off") => Some(LogTarget::Off),
            Some("stdout") => Some(LogTarget::Stdout),
            Some("stderr") => Some(LogTarget::Stderr),
            _ => read_path(item, reader, true).map(LogTarget::Path),
        }
    }
}
