//! One order at an authority, from the account to the certificate in its folder.
//!
//! The order's URL and its key are on the disk before it is finalized: who is killed after that goes on with the same order and the
//! same key.

mod validation;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use instant_acme::{
    Account, Error, Identifier, NewOrder, OrderStatus, RevocationReason, RevocationRequest,
};
use kettle_tls::identity::Identity;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::time::{sleep, timeout};

use crate::account;
use crate::job::{Failure, Job, is_about_the_order, is_passing};
use crate::plan::{Blame, Installed, OpenOrder, Standing};
use crate::protocol::Kind;
use crate::state::{Issued, Origin};

/// The start of an order.
pub enum Start {
    /// As a new one, in the place of the certificate with this identifier.
    New { replaces: Option<String> },
    /// By its URL.
    Open(OpenOrder),
}

/// The result of an order.
pub struct Obtained {
    /// The certificate that is in force now.
    pub installed: Installed,
    /// The kind of the last challenge that was answered.
    pub kind: Option<Kind>,
    /// The time it took.
    pub took: Duration,
}

impl Job<'_> {
    /// Gets the certificate and puts it in its place.
    ///
    /// # Errors
    /// Why not. The open order in `standing` holds then.
    pub async fn obtain(&self, standing: &mut Standing, start: Start) -> Result<Obtained, Failure> {
        let began = Instant::now();
        let mut kind = None;
        let work = self.work(standing, start, &mut kind);
        let done = timeout(self.time_max(), work).await;
        let late = || Failure::new(Blame::Authority, "the order is not done in time");
        let done = done.unwrap_or_else(|_| Err(late()));
        match done {
            Ok(installed) => Ok(Obtained { installed, kind, took: began.elapsed() }),
            Err(failure) => Err(Failure { kind, ..failure }),
        }
    }

    /// Validates the names, at the directory for rehearsals where there is one, and takes nothing from there.
    ///
    /// # Errors
    /// Why they do not validate.
    pub async fn rehearse(&self, standing: &mut Standing) -> Result<Option<Kind>, Failure> {
        let mut kind = None;
        let work = async {
            let account = account::of(self).await?;
            let is_rehearsal = self.directory != self.authority.directory;
            if !is_rehearsal {
                standing.begins(self.directory, SystemTime::now());
            }
            standing.validates(&self.authority.directory, is_rehearsal, SystemTime::now());
            self.state.keep_standing(&self.site.folder, standing)?;
            let mut order = self.new_order(&account, None, standing).await?;
            self.validate(&mut order, standing, &mut kind).await
        };
        let late = || Failure::new(Blame::Authority, "the rehearsal is not done in time");
        match timeout(self.time_max(), work).await.unwrap_or_else(|_| Err(late())) {
            Ok(()) => Ok(kind),
            Err(failure) => Err(Failure { kind, ..failure }),
        }
    }

    /// Has the certificate in force revoked, for this reason of RFC 5280.
    ///
    /// # Errors
    /// Why it is not.
    pub async fn revoke(&self, reason: Option<u8>) -> Result<(), Failure> {
        let reason = match reason {
            None => None,
            Some(number) => {
                let known = REASONS.iter().find(|(known, _)| *known == number);
                let unknown = || Failure::new(Blame::Operator, "authorities take no such reason");
                Some(known.ok_or_else(unknown)?.1.clone())
            }
        };
        let (chain, _) = self.state.certificate(&self.site.folder);
        let leaf = CertificateDer::from_pem_file(chain);
        let leaf = leaf.map_err(|error| Failure::here("the certificate", error))?;
        let work = async {
            let account = account::of(self).await?;
            let request = RevocationRequest { certificate: &leaf, reason };
            account.revoke(&request).await.map_err(|error| self.failure(error))
        };
        let late = || Failure::new(Blame::Authority, "the authority does not answer in time");
        timeout(ORDER_TIME_MAX, work).await.unwrap_or_else(|_| Err(late()))
    }

    /// An order that takes longer is gone on with later. Programs have their own time.
    fn time_max(&self) -> Duration {
        match self.site.challenges.contains(&Kind::Dns) {
            true => ORDER_TIME_MAX + self.site.program_time_max * 2 + self.site.propagation,
            false => ORDER_TIME_MAX,
        }
    }

    async fn work(
        &self,
        standing: &mut Standing,
        start: Start,
        kind: &mut Option<Kind>,
    ) -> Result<Installed, Failure> {
        let account = account::of(self).await?;
        let is_open = matches!(start, Start::Open(_));
        let mut order = match start {
            Start::New { replaces } => {
                standing.begins(self.directory, SystemTime::now());
                self.drop_order(standing)?;
                self.new_order(&account, replaces, standing).await?
            }
            Start::Open(open) => match account.order(open.url).await {
                Ok(order) => order,
                Err(error) => return Err(self.void_if_unknown(standing, error)),
            },
        };
        if is_open && order.state().status == OrderStatus::Invalid {
            self.drop_order(standing)?;
            let reason = "its order failed while nobody looked; another one begins";
            return Err(Failure::new(Blame::Void, reason));
        }
        let open = OpenOrder {
            url: order.url().to_owned(),
            directory: self.directory.to_owned(),
            names: self.purpose.names.clone(),
            key: self.purpose.key.clone(),
            begun: standing.order.as_ref().map_or_else(SystemTime::now, |open| open.begun),
        };
        standing.order = Some(open);
        let key = self.key(order.state().status, standing)?;
        if order.state().status == OrderStatus::Pending {
            standing.validates(self.directory, false, SystemTime::now());
        }
        self.state.keep_standing(&self.site.folder, standing)?;
        let validated = match order.state().status {
            OrderStatus::Pending => self.validate(&mut order, standing, kind).await,
            _ => Ok(()),
        };
        let fetched = match validated {
            Ok(()) => self.fetch(&mut order, standing, key.as_deref()).await,
            Err(failure) => Err(failure),
        };
        match fetched {
            Ok((chain, key)) => self.install(standing, &chain, &key),
            Err(failure) => {
                // An order that cannot go on is not gone on with.
                if order.state().status == OrderStatus::Invalid
                    || failure.blame == Blame::Validation
                {
                    self.drop_order(standing)?;
                }
                Err(failure)
            }
        }
    }

    /// The key of the order. One that was finalized is of no use without the key that it was finalized with.
    fn key(&self, status: OrderStatus, standing: &Standing) -> Result<Option<String>, Failure> {
        if let Some(key) = self.state.order_key(&self.site.folder) {
            return Ok(Some(key));
        }
        if matches!(status, OrderStatus::Processing | OrderStatus::Valid | OrderStatus::Invalid) {
            return Ok(None);
        }
        // One of another kind than is wanted now is no use.
        let is_of_kind = standing.installed.as_ref().is_some_and(|it| it.key == self.purpose.key);
        let before = (self.site.reuse_key && is_of_kind && !standing.is_key_void).then(|| {
            let (_, key) = self.state.certificate(&self.site.folder);
            std::fs::read_to_string(key).ok()
        });
        let key = match before.flatten() {
            Some(key) => key,
            None => self.site.new_key().map_err(|error| Failure::here("a key", error))?,
        };
        self.state.keep_order_key(&self.site.folder, &key)?;
        Ok(Some(key))
    }

    async fn new_order(
        &self,
        account: &Account,
        replaces: Option<String>,
        standing: &mut Standing,
    ) -> Result<instant_acme::Order, Failure> {
        let identifiers: Vec<Identifier> =
            self.purpose.names.iter().map(|it| identifier(it)).collect();
        let mut order = NewOrder::new(&identifiers);
        if let Some(profile) = &self.authority.profile {
            if !account.profiles().any(|known| known.name == profile) {
                self.client.forget_directory();
                let known: Vec<&str> = account.profiles().map(|known| known.name).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let reason = format!(
                    "the authority `{}` has no profile `{profile}`; it has {known}",
                    self.authority.name
                );
                return Err(Failure::new(Blame::Result, reason));
            }
            order = order.profile(profile);
        }
        if let Some(replaces) = replaces
            && let Some((issuer, serial)) = replaces.split_once('.')
        {
            let of = instant_acme::CertificateIdentifier {
                authority_key_identifier: issuer.into(),
                serial: serial.into(),
            };
            let mut replacing = NewOrder::new(&identifiers).replaces(of);
            if let Some(profile) = &self.authority.profile {
                replacing = replacing.profile(profile);
            }
            match account.new_order(&replacing).await {
                Ok(order) => return Ok(order),
                // Whatever it has against it, the certificate is what matters: once more, and without.
                Err(error) if is_about_the_order(&error) => {
                    standing.not_replaceable = Some(replaces);
                    // It may have been begun all the same (RFC 9773 §5).
                    standing.begins(self.directory, SystemTime::now());
                    self.state.keep_standing(&self.site.folder, standing)?;
                }
                Err(error) => return Err(self.failure(error)),
            }
        }
        account.new_order(&order).await.map_err(|error| self.failure(error))
    }

    /// Waits this long, or as long as the authority says.
    async fn pause(&self, pause: Duration) {
        let said = self.client.notes().retry_after;
        let said = said.and_then(|at| at.duration_since(SystemTime::now()).ok());
        sleep(said.map_or(pause, |said| said.clamp(pause, POLL_PATIENCE))).await;
    }

    /// Finalizes the order, if that was not done, and fetches the certificate.
    async fn fetch(
        &self,
        order: &mut instant_acme::Order,
        standing: &mut Standing,
        key: Option<&str>,
    ) -> Result<(String, String), Failure> {
        let Some(key) = key else {
            self.drop_order(standing)?;
            let reason = "the key of an order that was finalized is gone: it begins anew";
            return Err(Failure::new(Blame::Here, reason));
        };
        if order.state().status == OrderStatus::Ready {
            let request = self.site.request(key, &self.purpose.names);
            let request =
                request.map_err(|error| Failure::here("a request for a certificate", error))?;
            let finalized = order.finalize_csr(&request).await;
            finalized.map_err(|error| self.failure(error))?;
        }
        let mut pause = POLL_FIRST;
        loop {
            match order.state().status {
                OrderStatus::Valid => break,
                OrderStatus::Invalid => return Err(self.why_invalid(order).await),
                _ => {}
            }
            self.pause(pause).await;
            pause = (pause * 2).min(POLL_MAX);
            order.refresh().await.map_err(|error| self.failure(error))?;
        }
        let chain = order.certificate().await.map_err(|error| self.failure(error))?;
        let chain =
            chain.ok_or_else(|| Failure::new(Blame::Authority, "there is no certificate"))?;
        Ok((chain, key.to_owned()))
    }

    /// Puts a certificate in its place that is what was asked for.
    fn install(
        &self,
        standing: &mut Standing,
        chain: &str,
        key: &str,
    ) -> Result<Installed, Failure> {
        let now = SystemTime::now();
        let origin = Origin { directory: self.directory.to_owned() };
        let issued = Issued { chain, key, origin: &origin };
        let check = |chain: &Path, key: &Path| self.check(chain, key, now);
        if self.site.has_after {
            self.state.set_after_due(&self.site.folder, true)?;
        }
        let installed = self.state.install(&self.site.folder, &issued, now, check);
        if let Err(failure) = installed {
            // It would be the same again.
            if failure.blame == Blame::Result {
                self.drop_order(standing)?;
            }
            return Err(failure);
        }
        let installed = self.site.installed(self.state);
        let installed = installed.ok_or_else(|| Failure::here("the new certificate", "is gone"))?;
        self.state.forget_order_key(&self.site.folder)?;
        standing.succeeded(installed.clone(), self.purpose.clone(), now);
        // A note that is lost here is found out again.
        self.state.keep_standing(&self.site.folder, standing)?;
        Ok(installed)
    }

    fn check(&self, chain: &Path, key: &Path, now: SystemTime) -> Result<(), Failure> {
        let refused = |reason: String| {
            let name = &self.authority.name;
            Failure::new(Blame::Result, format!("the certificate that `{name}` issued {reason}"))
        };
        let loaded = Identity::load(chain, key, None);
        let (identity, _) = loaded.map_err(|error| refused(format!("cannot be used: {error}")))?;
        if let Some(missing) = self.purpose.names.iter().find(|name| !identity.covers(name)) {
            return Err(refused(format!("is not for {missing}")));
        }
        if self.site.key != identity.key_kind() {
            return Err(refused("is for another kind of key".to_owned()));
        }
        if now < identity.not_before() {
            return Err(refused(
                "is not valid yet: is the clock of this machine right?".to_owned(),
            ));
        }
        if identity.not_after() <= now {
            return Err(refused("has expired: is the clock of this machine right?".to_owned()));
        }
        Ok(())
    }

    fn drop_order(&self, standing: &mut Standing) -> Result<(), Failure> {
        standing.order = None;
        self.state.forget_order_key(&self.site.folder)?;
        Ok(self.state.keep_standing(&self.site.folder, standing)?)
    }

    /// An order that its authority does not know any more is no order.
    fn void_if_unknown(&self, standing: &mut Standing, error: Error) -> Failure {
        let status = self.client.notes().status;
        if matches!(status, Some(400..=428 | 430..=499))
            && !is_passing(&error)
            && let Err(failure) = self.drop_order(standing)
        {
            return failure;
        }
        let failure = self.failure(error);
        let blame = if standing.order.is_none() { Blame::Void } else { Blame::Authority };
        Failure { blame, ..failure }
    }
}

fn identifier(name: &str) -> Identifier {
    match name.parse() {
        Ok(address) => Identifier::Ip(address),
        Err(_) => Identifier::Dns(name.to_owned()),
    }
}

/// The reasons that clients may give (RFC 5280 §5.3.1).
const REASONS: [(u8, RevocationReason); 5] = [
    (0, RevocationReason::Unspecified),
    (1, RevocationReason::KeyCompromise),
    (3, RevocationReason::AffiliationChanged),
    (4, RevocationReason::Superseded),
    (5, RevocationReason::CessationOfOperation),
];

/// The longest time of an order, without programs.
const ORDER_TIME_MAX: Duration = Duration::from_mins(10);

/// The time it takes until an order is looked at for the first time;
const POLL_FIRST: Duration = Duration::from_millis(250);
/// this doubles, up to this;
const POLL_MAX: Duration = Duration::from_secs(10);
/// and an authority may want up to this.
const POLL_PATIENCE: Duration = Duration::from_mins(2);
