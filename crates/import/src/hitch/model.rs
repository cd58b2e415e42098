//! One picture of what file and command line say: who listens with which certificates, and what holds for all.

mod address;

use std::collections::BTreeMap;

use kettle_config::{Diagnostic, Origin};

use super::file::{flag, protocols};
use super::{Dialect, Statement, Value};
pub(super) use address::{Endpoint, Target};

/// Settings by their names; a later one has taken the place of an earlier.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings(BTreeMap<&'static str, Setting>);

#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) text: String,
    pub(super) origin: Origin,
}

#[derive(Debug)]
pub(super) struct Model {
    pub(super) dialect: Dialect,
    pub(super) frontends: Vec<Frontend>,
    pub(super) backend: Option<(Target, Origin)>,
    pub(super) pem_files: Vec<PemFile>,
    pub(super) settings: Settings,
}

#[derive(Debug)]
pub(super) struct Frontend {
    pub(super) endpoint: Endpoint,
    pub(super) origin: Origin,
    pub(super) pem_files: Vec<PemFile>,
    pub(super) settings: Settings,
}

#[derive(Clone, Debug)]
pub(super) struct PemFile {
    pub(super) path: String,
    pub(super) origin: Origin,
    pub(super) settings: Settings,
}

impl Settings {
    pub(super) fn text(&self, key: &str) -> Option<&Setting> {
        self.0.get(key).filter(|setting| !setting.text.is_empty())
    }

    /// Tells whether a switch is on; nothing if nobody said.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.0.get(key).and_then(|setting| flag(&setting.text))
    }

    /// A switch that is on, with its place.
    pub(super) fn on(&self, key: &str) -> Option<&Setting> {
        self.0.get(key).filter(|setting| flag(&setting.text) == Some(true))
    }

    pub(super) fn number(&self, key: &str) -> Option<(u32, &Origin)> {
        let setting = self.0.get(key)?;
        Some((setting.text.parse().ok()?, &setting.origin))
    }

    fn put(&mut self, statement: Statement) {
        if let Value::Text(text) = statement.value {
            let setting = Setting { text, origin: statement.origin };
            self.0.insert(statement.key, setting);
        }
    }

    /// The versions asked for, by whichever of the three settings.
    pub(super) fn protocols(&self) -> Option<(Vec<&str>, &Origin)> {
        let tls = self.on("tls");
        let ssl = self.on("ssl");
        match (self.text("tls-protos"), tls, ssl) {
            (Some(list), ..) => Some((protocols(&list.text).collect(), &list.origin)),
            (None, _, Some(ssl)) => Some((ALL_VERSIONS.to_vec(), &ssl.origin)),
            (None, Some(tls), None) => {
                Some((ALL_VERSIONS.get(1..).unwrap_or_default().to_vec(), &tls.origin))
            }
            (None, None, None) => None,
        }
    }
}

/// Makes the picture.
pub(super) fn of(dialect: Dialect, statements: Vec<Statement>) -> Result<Model, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let mut model = Model {
        dialect,
        frontends: Vec::new(),
        backend: None,
        pem_files: Vec::new(),
        settings: Settings::default(),
    };
    refuse_second_protocols(&statements, &mut diagnostics);
    for statement in statements {
        match (statement.key, statement.value) {
            ("frontend", Value::Text(text)) if !text.is_empty() => match address::frontend(&text) {
                Ok((endpoint, pem)) => {
                    let origin = statement.origin;
                    let pem_file = |path| pem_file(path, origin.clone());
                    let pem_files = pem.map(pem_file).into_iter().collect();
                    let settings = Settings::default();
                    let frontend = Frontend { endpoint, origin, pem_files, settings };
                    model.add_frontend(frontend, &mut diagnostics);
                }
                Err(message) => {
                    diagnostics.push(statement.origin.diagnostic(message, ADDRESS_HELP()))
                }
            },
            ("frontend", Value::Block(block)) => {
                if let Some(frontend) = block_frontend(block, statement.origin, &mut diagnostics) {
                    model.add_frontend(frontend, &mut diagnostics);
                }
            }
            ("backend", Value::Text(text)) if !text.is_empty() => match address::backend(&text) {
                Ok(target) => model.backend = Some((target, statement.origin)),
                Err(message) => {
                    diagnostics.push(statement.origin.diagnostic(message, ADDRESS_HELP()))
                }
            },
            ("pem-file", value) => {
                model.pem_files.extend(pem(value, statement.origin, &mut diagnostics));
            }
            (key, value) => {
                model.settings.put(Statement { key, value, origin: statement.origin });
            }
        }
    }
    contradictions(&model, &mut diagnostics);
    if diagnostics.is_empty() { Ok(model) } else { Err(diagnostics) }
}

impl Model {
    /// Returns the facility of the system's log to which messages go, if they go there.
    pub(super) fn syslog(&self) -> Option<u8> {
        self.settings.on("syslog")?;
        let facility = self.settings.text("syslog-facility");
        Some(facility.and_then(|it| syslog_facility(&it.text)).unwrap_or(DEFAULT_FACILITY))
    }

    fn add_frontend(&mut self, frontend: Frontend, diagnostics: &mut Vec<Diagnostic>) {
        if self.frontends.iter().any(|other| other.endpoint == frontend.endpoint) {
            let message = format!("another frontend listens on {} already", frontend.endpoint);
            let help = Some("remove one of both, or write another port".to_owned());
            diagnostics.push(frontend.origin.diagnostic(message, help));
        }
        self.frontends.push(frontend);
    }
}

fn block_frontend(
    block: Vec<Statement>,
    origin: Origin,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Frontend> {
    refuse_second_protocols(&block, diagnostics);
    let mut pem_files = Vec::new();
    let mut settings = Settings::default();
    for statement in block {
        match statement.key {
            "pem-file" => pem_files.extend(pem(statement.value, statement.origin, diagnostics)),
            _ => settings.put(statement),
        }
    }
    let host = settings.text("host").map_or("*", |host| host.text.as_str());
    let Some(port) = settings.text("port") else {
        let help = Some("write port = \"443\" in its block".to_owned());
        diagnostics.push(origin.diagnostic("this frontend has no port", help));
        return None;
    };
    match Endpoint::new(host, &port.text) {
        Ok(endpoint) => Some(Frontend { endpoint, origin, pem_files, settings }),
        Err(message) => {
            diagnostics.push(port.origin.diagnostic(message, ADDRESS_HELP()));
            None
        }
    }
}

fn pem_file(path: String, origin: Origin) -> PemFile {
    PemFile { path, origin, settings: Settings::default() }
}

/// An empty name stands for nothing.
fn pem(value: Value, origin: Origin, diagnostics: &mut Vec<Diagnostic>) -> Option<PemFile> {
    let block = match value {
        Value::Text(path) => return Some(pem_file(path, origin)).filter(|it| !it.path.is_empty()),
        Value::Block(block) => block,
    };
    let mut settings = Settings::default();
    block.into_iter().for_each(|statement| settings.put(statement));
    let Some(cert) = settings.text("cert").cloned() else {
        let help = Some("write cert = \"…\" in its block".to_owned());
        diagnostics.push(origin.diagnostic("this pem-file names no certificate", help));
        return None;
    };
    if let Some(verify) = settings.text("client-verify")
        && verify.text != "none"
        && settings.text("client-verify-ca").is_none()
    {
        diagnostics.push(verify.origin.diagnostic(NO_CA, Some(CA_HELP.to_owned())));
    }
    Some(PemFile { path: cert.text, origin: cert.origin, settings })
}

/// In a file, versions are said once; the command line says otherwise.
fn refuse_second_protocols(statements: &[Statement], diagnostics: &mut Vec<Diagnostic>) {
    let keys = ["tls-protos", "tls", "ssl"];
    let mut first: Option<&Statement> = None;
    for statement in statements.iter().filter(|statement| keys.contains(&statement.key)) {
        let is_off = matches!(&statement.value, Value::Text(text) if flag(text) == Some(false));
        if let Some(first) = first.filter(|_| statement.origin.at.is_written()) {
            let message =
                format!("`{}` follows `{}`, which says it already", statement.key, first.key);
            diagnostics
                .push(statement.origin.diagnostic(message, Some("remove one of both".to_owned())));
        } else if !is_off && statement.origin.at.is_written() {
            first = Some(statement);
        }
    }
}

fn contradictions(model: &Model, diagnostics: &mut Vec<Diagnostic>) {
    let settings = &model.settings;
    let ways = ["write-ip", "proxy-proxy", "write-proxy-v1", "write-proxy-v2", "write-proxy"];
    let mut on = ways.iter().filter_map(|way| Some((way, settings.on(way)?)));
    let is_same = |one: &str, other: &str| {
        model.dialect == Dialect::Hitch
            && [one, other].iter().all(|way| ["write-proxy", "write-proxy-v2"].contains(way))
    };
    if let Some((first, _)) = on.next()
        && let Some((second, setting)) = on.find(|(way, _)| !is_same(first, way))
    {
        let message = format!("`{second}` and `{first}` exclude each other");
        diagnostics
            .push(setting.origin.diagnostic(message, Some("turn one of both off".to_owned())));
    }
    if let Some(client) = settings.on("client") {
        let message =
            "the client's mode of hitch and stud trusts every server, so it is not taken over";
        let help = "run `kettle originate --listen PORT --to HOST:PORT`, which verifies the server";
        diagnostics.push(client.origin.diagnostic(message, Some(help.to_owned())));
    }
    let global_ca = settings.text("client-verify-ca");
    for (own, ca) in std::iter::once((settings, None))
        .chain(model.frontends.iter().map(|frontend| (&frontend.settings, global_ca)))
    {
        if let Some(verify) = own.text("client-verify")
            && verify.text != "none"
            && own.text("client-verify-ca").or(ca).is_none()
        {
            diagnostics.push(verify.origin.diagnostic(NO_CA, Some(CA_HELP.to_owned())));
        }
    }
    if let Some(facility) = settings.text("syslog-facility")
        && syslog_facility(&facility.text).is_none()
    {
        let message = format!("there is no syslog facility `{}`", facility.text);
        diagnostics.push(facility.origin.diagnostic(message, Some("write \"daemon\"".to_owned())));
    }
}

fn syslog_facility(name: &str) -> Option<u8> {
    FACILITIES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

const ALL_VERSIONS: [&str; 5] = ["SSLv3", "TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3"];

const NO_CA: &str =
    "clients are asked for certificates, and no client-verify-ca says whom to trust";
const CA_HELP: &str = "write client-verify-ca = \"…\", the file with the authorities";

/// Their numbers are those of syslog.h.
const FACILITIES: [(&str, u8); 20] = [
    ("kern", 0),
    ("user", 1),
    ("mail", 2),
    ("daemon", DEFAULT_FACILITY),
    ("auth", 4),
    ("syslog", 5),
    ("lpr", 6),
    ("news", 7),
    ("uucp", 8),
    ("cron", 9),
    ("authpriv", 10),
    ("ftp", 11),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", 23),
];

const DEFAULT_FACILITY: u8 = 3;

const ADDRESS_HELP: fn() -> Option<String> = || Some("write \"[HOST]:PORT\"".to_owned());
