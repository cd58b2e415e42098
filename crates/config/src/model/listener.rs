//! `[[listener]]`: an address, what it speaks, and where its records are encrypted.

use std::net::SocketAddr;

use crate::located::Located;
use crate::setting::{
    KIB, MIB, Network, located_address, networks, number, one_number, required, settings, size,
    variants, word,
};
use crate::word::words;

words! {
    /// What plain HTTP gets where HTTPS is spoken.
    pub enum PlainHttp {
        /// Status 400, and a page that says so and links to the same address over HTTPS.
        Refuse = "refuse",
        /// A redirect (307) to the same address over HTTPS.
        Redirect = "redirect",
    }
}

words! {
    /// Where the records of a response are encrypted.
    pub enum PathChoice {
        /// The cheapest place for each response: user space for small bodies, the kernel from
        /// `crossover` up if it can carry the connection's cipher.
        Auto = "auto",
        /// Always in user space. No kernel TLS is needed.
        User = "user",
        /// In the kernel, from our own buffers.
        KernelWrite = "kernel-write",
        /// In the kernel, straight from the page cache.
        KernelSendfile = "kernel-sendfile",
    }
}

settings! {
    /// An address to listen on.
    pub struct Listener {
        /// The IP address and port. `0.0.0.0` stands for all IPv4 addresses of the machine, `[::]`
        /// for all its IPv6 addresses and only those: to serve both, write two listeners.
        pub address: Located<SocketAddr> = required(located_address("0.0.0.0:443")),
        /// Connections the kernel holds ready until a worker accepts them. The kernel lowers it
        /// to `net.core.somaxconn`.
        pub backlog: u32 = number(4096, 1, 65_535, "connections"),
        /// The networks of load balancers that say for whom they speak by a PROXY header (version 1
        /// or 2). From there a connection must begin with one, within 3 seconds, and the client it
        /// names is the one in log and limits; from elsewhere a connection with one is closed.
        pub accept_proxy: Vec<Network> = networks(),
    }
    variants {
        /// What is spoken on this address.
        pub kind: ListenerKind,
    }
}

variants! {
    /// What is spoken on this address.
    pub enum ListenerKind by "kind" {
        /// HTTPS: serves the sites.
        Https(HttpsListener) = "https",
        /// Plain HTTP that answers every request with a redirect to the same address over HTTPS.
        Redirect(RedirectListener) = "redirect",
    }
}

settings! {
    /// A listener that serves the sites.
    pub struct HttpsListener {
        /// What a client gets that speaks plain HTTP to an HTTPS listener.
        pub plain_http: PlainHttp = word(PlainHttp::Refuse),
        /// Where records are encrypted. If the kernel refuses a connection, it stays in user
        /// space and the refusal is counted with its reason.
        pub path: PathChoice = word(PathChoice::Auto),
        /// With `path = "auto"`: the size of body from which the kernel takes over.
        /// `kettle calibrate` measures the best value for a machine.
        pub crossover: u64 = size(64 * KIB, 0, 1024 * MIB),
    }
}

settings! {
    /// A listener that sends its clients to another.
    pub struct RedirectListener {
        /// The HTTPS port that redirects point to.
        pub redirect_port: u16 = number(443, 1, 65_535, ""),
        /// The status of redirects. 307 and 308 keep the method of the request; 301 and 308 are
        /// remembered by browsers.
        pub redirect_status: u16 = one_number(308, &[301, 302, 307, 308]),
    }
}

impl Listener {
    /// The settings of an HTTPS listener, if it is one.
    pub fn https(&self) -> Option<&HttpsListener> {
        match &self.kind {
            ListenerKind::Https(https) => Some(https),
            ListenerKind::Redirect(_) => None,
        }
    }
}
