//! The operator's live switch: where new connections may have their records encrypted.
//!
//! It does not touch connections that are already in the kernel; there is no way back from there.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

/// Read by the workers whenever a connection could move into the kernel.
#[derive(Debug, Default)]
pub struct KillSwitch {
    user_only: AtomicBool,
}

/// What the switch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchPosition {
    /// As the configuration says.
    Auto,
    /// In user space, whatever the configuration says.
    User,
}

impl KillSwitch {
    /// Sets the switch, for every decision from now on.
    pub fn set(&self, position: SwitchPosition) {
        self.user_only.store(position == SwitchPosition::User, Relaxed);
    }

    /// What the switch says now.
    #[must_use]
    pub fn position(&self) -> SwitchPosition {
        if self.is_user_only() { SwitchPosition::User } else { SwitchPosition::Auto }
    }

    /// Whether no further connection may move into the kernel.
    #[must_use]
    pub fn is_user_only(&self) -> bool {
        self.user_only.load(Relaxed)
    }
}

impl SwitchPosition {
    /// The word used on the command line and in the status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SwitchPosition::Auto => "auto",
            SwitchPosition::User => "user",
        }
    }
}

impl fmt::Display for SwitchPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The word was neither `auto` nor `user`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownSwitchPosition;

impl fmt::Display for UnknownSwitchPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the path is either `auto` or `user`")
    }
}

impl std::error::Error for UnknownSwitchPosition {}

impl FromStr for SwitchPosition {
    type Err = UnknownSwitchPosition;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "auto" => Ok(SwitchPosition::Auto),
            "user" => Ok(SwitchPosition::User),
            _ => Err(UnknownSwitchPosition),
        }
    }
}
