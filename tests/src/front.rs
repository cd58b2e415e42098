//! A front of an authority that does as a test tells it: passes requests on, answers itself, or breaks off. It counts what was asked.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::certificate::{Kind, issue, roots};

/// The fate of a request.
#[derive(Clone, Debug)]
pub enum Act {
    /// The authority behind answers it.
    Pass,
    /// The authority behind answers it, so much later.
    PassLate(Duration),
    /// The authority gets it, and its answer is lost.
    LoseAnswer,
    /// The authority gets it, and of its answer the last byte does not come.
    LoseEnd,
    /// There is no answer as long as the client waits. The authority gets the request, if it is passed on.
    Hold {
        /// True if it is.
        is_passed: bool,
    },
    /// This is the answer.
    Say(String),
    /// The connection is closed.
    Cut,
    /// An answer of 1 GiB, or as much of it as is taken.
    Flood,
}

/// The front.
pub struct Front {
    /// Its address.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

type Rule = Arc<Mutex<dyn FnMut(&str) -> Act + Send>>;

impl Front {
    /// One at this address, before the authority at another one. `rule` decides by the method and the path: `POST /order-plz`.
    #[must_use]
    pub fn start(
        address: SocketAddr,
        behind: SocketAddr,
        rule: impl FnMut(&str) -> Act + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let rule: Rule = Arc::new(Mutex::new(rule));
        let config = server_config(address);
        let noted = Arc::clone(&asked);
        thread::spawn(move || {
            for socket in listener.incoming() {
                let Ok(socket) = socket else { return };
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let stream = StreamOwned::new(connection, socket);
                let rule = Arc::clone(&rule);
                let noted = Arc::clone(&noted);
                // A client that leaves is none of the front's business.
                thread::spawn(move || drop(serve(stream, behind, &rule, &noted)));
            }
        });
        Self { address, asked }
    }

    /// The URL of the directory here.
    pub fn directory(&self) -> String {
        format!("https://{}/dir", self.address)
    }

    /// Returns the number of times something was asked for whose method and path begin so.
    pub fn asked(&self, what: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| asked.starts_with(what)).count()
    }
}

fn serve(
    mut stream: StreamOwned<ServerConnection, TcpStream>,
    behind: SocketAddr,
    rule: &Rule,
    noted: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let (head, body) = read_request(&mut stream)?;
    let what: Vec<&str> = head.split(' ').take(2).collect();
    let what = what.join(" ");
    let act = (rule.lock().unwrap())(&what);
    noted.lock().unwrap().push(what);
    match act {
        Act::Pass => stream.write_all(&ask(behind, &head, &body)?)?,
        Act::PassLate(late) => {
            let answer = ask(behind, &head, &body)?;
            #[expect(clippy::disallowed_methods, reason = "it is what is asked of it")]
            thread::sleep(late);
            stream.write_all(&answer)?;
        }
        Act::LoseAnswer => drop(ask(behind, &head, &body)?),
        Act::LoseEnd => {
            let mut answer = ask(behind, &head, &body)?;
            answer.pop();
            stream.write_all(&answer)?;
        }
        Act::Hold { is_passed } => {
            if is_passed {
                ask(behind, &head, &body)?;
            }
            // Until it leaves.
            drop(stream.read(&mut [0]));
        }
        Act::Say(answer) => stream.write_all(answer.as_bytes())?,
        Act::Cut => {}
        Act::Flood => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"a\":\"")?;
            for _ in 0..1_024 {
                stream.write_all(&vec![b'a'; 1 << 20])?;
            }
        }
    }
    stream.conn.send_close_notify();
    stream.flush()
}

/// The head with its last line, and the body.
fn read_request(stream: &mut impl Read) -> io::Result<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line == "\r\n" {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((head, body))
}

/// The answer of the authority behind, as it came.
fn ask(behind: SocketAddr, head: &str, body: &[u8]) -> io::Result<Vec<u8>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots())
        .with_no_client_auth();
    let name = ServerName::from(behind.ip());
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(behind)?);
    stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

fn server_config(address: SocketAddr) -> Arc<ServerConfig> {
    let own = issue(&[&address.ip().to_string()], Kind::Ecdsa);
    let chain: Vec<CertificateDer<'static>> = vec![own.der.clone()];
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    Arc::new(config)
}
