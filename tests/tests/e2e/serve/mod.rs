//! Files over HTTP/1.1 and TLS, wherever the records are encrypted.

mod every_suite;
