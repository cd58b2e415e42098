//! Files over HTTP/1.1 and TLS, wherever the records are encrypted.

mod body;
mod client_certificate;
mod control_group;
mod curl;
mod disk;
mod doctor_host;
mod every_suite;
mod file;
mod handshake;
mod handshake_end;
mod hosts;
mod limit;
mod no_thread;
mod pairing;
mod proxy_header;
mod range;
mod redirect;
mod refused;
mod resumption;
mod site;
mod workers;
