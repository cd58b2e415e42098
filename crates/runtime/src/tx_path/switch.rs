//! The operator's live switch: where new connections may have their records encrypted.
//!
//! It does not touch connections that are already in the kernel; there is no way back from there.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

/// Read by the workers whenever a connection could move into the kernel.
#[derive(Debug, Default)]
pub struct TxPathSwitch {
    user_only: AtomicBool,
}

/// The position of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TxPathOverride {
    /// As the configuration says.
    Auto,
    /// In user space, whatever the configuration says.
    User,
}

impl TxPathSwitch {
    /// Sets the switch, for every decision from now on.
    pub fn set(&self, position: TxPathOverride) {
        self.user_only.store(position == TxPathOverride::User, Relaxed);
    }

    /// Returns the position of the switch now.
    #[must_use]
    pub fn position(&self) -> TxPathOverride {
        if self.is_user_only() { TxPathOverride::User } else { TxPathOverride::Auto }
    }

    /// True if no further connection may move into the kernel.
    #[must_use]
    pub fn is_user_only(&self) -> bool {
        self.user_only.load(Relaxed)
    }
}

impl TxPathOverride {
    /// The word used on the command line and in the status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            TxPathOverride::Auto => "auto",
            TxPathOverride::User => "user",
        }
    }
}

impl fmt::Display for TxPathOverride {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The word was neither `auto` nor `user`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownTxPathOverride;

impl fmt::Display for UnknownTxPathOverride {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the path is either `auto` or `user`")
    }
}

impl std::error::Error for UnknownTxPathOverride {}

impl FromStr for TxPathOverride {
    type Err = UnknownTxPathOverride;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "auto" => Ok(TxPathOverride::Auto),
            "user" => Ok(TxPathOverride::User),
            _ => Err(UnknownTxPathOverride),
        }
    }
}
