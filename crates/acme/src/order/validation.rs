//! The validation of an order's names: challenges, and why a name did not pass.

use instant_acme::{
    AuthorizationStatus, AuthorizedIdentifier, Challenge, ChallengeType, Error, Identifier,
    OrderStatus,
};
use tokio::time::sleep;

use super::{POLL_FIRST, POLL_MAX};
use crate::job::{Failure, Job, KeptAccount, text_of};
use crate::plan::{Blame, Standing};
use crate::protocol::Kind;
use crate::server::Presented;

impl Job<'_> {
    /// Has all names validated that are not yet. All is presented before the first one is looked at: records take their time.
    pub(super) async fn validate(
        &self,
        order: &mut instant_acme::Order,
        standing: &Standing,
        kind: &mut Option<Kind>,
    ) -> Result<(), Failure> {
        let mut presented: Vec<Presented> = Vec::new();
        let mut records = self.warden.records(&self.site.folder, self.site.program_time_max);
        let mut chosen_kinds = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(|error| self.failure(error))?;
            let name = name_of(&authorization.identifier());
            match authorization.status {
                AuthorizationStatus::Valid => continue,
                AuthorizationStatus::Pending => {}
                // The order is void with it.
                _ => {
                    let reason = refusals(&authorization.challenges, &name);
                    return Err(Failure::of_names(vec![(name, reason)], Vec::new()));
                }
            }
            let (chosen, r#type) = self.choose(&authorization.challenges, standing, &name)?;
            *kind = Some(chosen);
            // It offers this one, as `choose` has found.
            if chosen == Kind::DnsPersist {
                self.keep_record()?;
                chosen_kinds.push(r#type);
                continue;
            }
            let challenge = authorization.challenge(r#type.clone()).ok_or_else(gone)?;
            let answer = challenge.key_authorization();
            if chosen == Kind::Dns {
                let number = self.site.names.iter().position(|known| *known == name);
                let number = number.unwrap_or(usize::MAX);
                let written = records.present(number, answer.dns_value()).await;
                written.map_err(|reason| Failure::new(Blame::Here, reason))?;
            } else {
                let token = challenge.token.clone();
                let shown = self.server.present(chosen, &name, &token, answer.as_str()).await;
                presented.push(shown.map_err(|error| Failure::here("the challenge", error))?);
            }
            chosen_kinds.push(r#type);
        }
        if records.are_there() {
            sleep(self.site.propagation).await;
        }
        let mut chosen_kinds = chosen_kinds.into_iter();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(|error| self.failure(error))?;
            if authorization.status != AuthorizationStatus::Pending {
                continue;
            }
            let name = name_of(&authorization.identifier());
            let Some(r#type) = chosen_kinds.next() else { break };
            let mut challenge = authorization.challenge(r#type).ok_or_else(gone)?;
            challenge.set_ready().await.map_err(|error| self.not_taken(error, &name))?;
        }
        self.await_validation(order).await
    }

    /// The kind of challenge that comes next, of those that the site takes and the authority offers.
    fn choose(
        &self,
        offered: &[Challenge],
        standing: &Standing,
        name: &str,
    ) -> Result<(Kind, ChallengeType), Failure> {
        let is_offered = |kind: &Kind| offered.iter().any(|it| it.r#type == type_of(*kind));
        let possible: Vec<Kind> = self.site.challenges.iter().copied().filter(is_offered).collect();
        let turn = usize::try_from(standing.failures.validations).unwrap_or_default();
        let chosen = turn.checked_rem(possible.len()).and_then(|turn| possible.get(turn));
        let Some(chosen) = chosen else {
            let reason = format!(
                "the authority `{}` offers no kind of challenge for {name} that the site has",
                self.authority.name
            );
            return Err(Failure::new(Blame::Result, reason));
        };
        Ok((*chosen, type_of(*chosen)))
    }

    /// Keeps what the authorization that came last says about records, for those who ask.
    fn keep_record(&self) -> Result<(), Failure> {
        let kept = self.state.account::<KeptAccount>(self.directory);
        let Some(kept) = kept else { return Ok(()) };
        let account = serde_json::to_value(&kept.credentials).unwrap_or_default();
        let url = account.get("id").and_then(|id| id.as_str()).unwrap_or_default();
        let offer = self.client.notes().offer.ok_or("it is not offered");
        let record = offer.and_then(|it| it.record(url));
        let record = record.map_err(|why| {
            let name = &self.authority.name;
            Failure::new(
                Blame::Result,
                format!("{name} offers dns-persist-01 as kettle does not know it: {why}"),
            )
        })?;
        if kept.record.as_ref() != Some(&record) {
            let kept = KeptAccount { record: Some(record), ..kept };
            self.state.keep_account(self.directory, &kept)?;
        }
        Ok(())
    }

    async fn await_validation(&self, order: &mut instant_acme::Order) -> Result<(), Failure> {
        let mut pause = POLL_FIRST;
        loop {
            self.pause(pause).await;
            pause = (pause * 2).min(POLL_MAX);
            let status = order.refresh().await.map_err(|error| self.failure(error))?.status;
            match status {
                OrderStatus::Pending => {}
                OrderStatus::Ready | OrderStatus::Processing | OrderStatus::Valid => return Ok(()),
                OrderStatus::Invalid => return Err(self.why_invalid(order).await),
            }
        }
    }

    /// The problem of each name that did not validate.
    pub(super) async fn why_invalid(&self, order: &mut instant_acme::Order) -> Failure {
        // The order's own problem is that of a name, where one has failed.
        let of_order = order.state().error.as_ref().map(text_of);
        let mut refused = Vec::new();
        let mut validated = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            let name = name_of(&authorization.identifier());
            if authorization.refresh().await.is_err() {
                continue;
            }
            match authorization.status {
                AuthorizationStatus::Valid => validated.push(name),
                AuthorizationStatus::Invalid => {
                    let reason = refusals(&authorization.challenges, &name);
                    refused.push((name, reason));
                }
                _ => {}
            }
        }
        if refused.is_empty() {
            let unknown = || "the authority does not say why the order is invalid".to_owned();
            return Failure::new(Blame::Result, of_order.unwrap_or_else(unknown));
        }
        Failure::of_names(refused, validated)
    }

    /// Why a challenge was not taken up. Its own problem is one of the name.
    fn not_taken(&self, error: Error, name: &str) -> Failure {
        let failure = self.failure(error);
        match failure.blame {
            Blame::Operator | Blame::Result => {
                let refused = vec![(name.to_owned(), failure.reason.clone())];
                Failure { blame: Blame::Validation, refused, ..failure }
            }
            _ => failure,
        }
    }
}

fn refusals(challenges: &[Challenge], name: &str) -> String {
    let failed = challenges.iter().filter_map(|challenge| {
        let problem = challenge.error.as_ref()?;
        let is_it = |kind: &&Kind| type_of(**kind) == challenge.r#type;
        let kind = KINDS.iter().find(is_it);
        let help = match kind {
            Some(Kind::DnsPersist) => "; `kettle ctl acme dns-records` prints the record for it",
            _ => "",
        };
        let kind = kind.map_or("another challenge", |kind| kind.as_str());
        Some(format!("{name} by {kind}: {}{help}", text_of(problem)))
    });
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() { format!("{name} is not validated") } else { failed.join("; ") }
}

fn gone() -> Failure {
    Failure::new(Blame::Authority, "a challenge is gone")
}

/// A name as the site has it.
fn name_of(authorized: &AuthorizedIdentifier<'_>) -> String {
    match authorized.identifier {
        Identifier::Dns(name) if authorized.wildcard => format!("*.{name}"),
        Identifier::Dns(name) => name.clone(),
        Identifier::Ip(address) => address.to_string(),
        _ => String::new(),
    }
}

fn type_of(kind: Kind) -> ChallengeType {
    match kind {
        Kind::TlsAlpn => ChallengeType::TlsAlpn01,
        Kind::Http => ChallengeType::Http01,
        Kind::Dns => ChallengeType::Dns01,
        Kind::DnsPersist => ChallengeType::Unknown(Kind::DnsPersist.as_str().to_owned()),
    }
}

const KINDS: [Kind; 4] = [Kind::TlsAlpn, Kind::Http, Kind::Dns, Kind::DnsPersist];
