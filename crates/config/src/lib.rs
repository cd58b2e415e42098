//! kettle's configuration: TOML text in, a valid [`Config`] or every mistake in it out.
//!
//! This crate opens no socket and parses no certificate; [`check_files`] looks at the file system
//! and nothing else does. Values a later stage may still find wrong keep their place as
//! [`Located`], and [`Config::diagnostic`] turns that place into a [`Diagnostic`].
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod advice;
mod check;
mod check_files;
mod diagnostic;
mod foreign;
mod glob;
mod located;
mod map_index;
mod media_type;
mod model;
mod nearest;
mod option;
mod origin;
mod parse;
mod read;
mod reference;
mod route_index;
mod rule_index;
mod schema;
mod setting;
mod source;
mod syntax;
mod word;

pub use advice::advice;
pub use check::{Addresses, collide, do_protocols_fit, leads_back};
pub use check_files::{ERROR_PAGE_BYTES_MAX, check_files, is_to_be_made};
pub use diagnostic::{Diagnostic, Excerpt};
pub use foreign::not_here;
pub use glob::{CacheControl, DenyPatterns};
pub use located::{Located, Position};
pub use map_index::{Chosen, MapIndex, Maps};
pub use media_type::{RUN_EXTENSIONS, media_type, nginx_extensions, nginx_media_type};
pub use model::{
    AccelRedirect, Acme, AcmeCertificate, Admin, AlpnRoutes, AnswerRewrite, Backend,
    BackendChoices, BackendHost, BackendMethod, BackendProtocol, BackendServer, BackendTls,
    Balance, BasicAuth, Before, Believed, Cache, CacheRule, Captures, Certificate, ChallengeKind,
    Check, CheckKind, ClientAuth, ClientAuthKey, ClientAuthMode, Coding, Condition, Config,
    CookieFlag, CookieFlags, Cors, EarlyHints, ErrorPage, ErrorTarget, Expires, Expression,
    Expressions, ExternalAccount, FastCgi, FieldPart, FieldTemplate, FileKind, ForwardAuth, Group,
    Hsts, HttpsListener, IfModifiedSince, KeyType, Limits, ListenAddress, Listener, ListenerAcme,
    ListenerCertificate, ListenerKind, Log, LogFormat, LogTarget, Map, Metrics, Missing, NamedWord,
    Network, PassthroughListener, PathChoice, PathPattern, Piece, Place, PlaceKey, PlainHttp,
    ProxyTlv, RateLimit, Reach, Redirect, RedirectListener, RequestBuffering, RequestWord, Respond,
    RetryOn, Rewrite, Roots, Route, RouteCache, SameSite, Sandboxing, Scheme, SendProxy,
    ServerAddress, ServerCookie, ServerSettings, SignedUrls, Site, StartTls, Subject, Suite,
    Symlinks, TcpListener, Template, Tls, TlsListener, TlsVersion, TooLarge, Truncation,
    TunnelPathChoice, TxPathChoice, TypeTable, UnknownNames, WantedCertificate,
};
pub use nearest::closest;
pub use option::option_advice;
pub use origin::{Origin, Origins};
pub use parse::{parse, parse_bytes, parse_made};
pub use reference::reference_markdown;
pub use route_index::{RouteIndex, find_plainly};
pub use rule_index::{Candidates, PathKey, RuleIndex};
pub use schema::{json_schema, json_schema_text};
pub use setting::{
    ANY_NAME, NamePattern, is_own_header, is_own_request_header, is_site_name, quoted,
    written_prefix,
};
pub use word::UnknownWord;
