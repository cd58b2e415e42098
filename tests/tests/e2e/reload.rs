//! Running a server: commands, reloads, the kill switch, numbers, logs and the orderly end.

mod command;
mod connecting;
mod log;
mod number;
mod privilege;
mod sandbox;
mod status_watch;
mod stop;
mod swap;
mod switch;
mod watch;
