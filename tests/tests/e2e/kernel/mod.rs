//! Connections whose records the kernel encrypts, proven by its own counts.

mod every_suite;
mod failure;
mod key_update;
mod switch;
mod violation;
