//! A connection as its client sees it: what is said to it, and what comes back.

mod client;
mod conversation;
mod differential;
mod ends;
mod floods;
mod growth;
mod ignored;
mod leaving;
mod priorities;
mod resets;
mod said;
mod windows;
