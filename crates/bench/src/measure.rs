//! What a load costs the server and the machine, read from the kernel's own books on one clock: processor time, memory,
//! context switches, kernel TLS, retransmits; and what disturbed the measurement.

pub mod machine;
