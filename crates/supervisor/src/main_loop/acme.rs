//! Requests of `kettle ctl acme` and of the metrics, passed on to the issuer, and its answers on their way back.

use std::time::{Duration, Instant};

use kettle_acme::protocol::{OF_ANOTHER_SERVER, Order, Report, SiteStatus};
use kettle_config::{Config, closest};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::acme_counters::AcmeCounters;
use crate::admin::acme::{AcmeRequest, AcmeStatus};
use crate::admin::protocol::Reply;
use crate::issuer::Issuer;

/// Questions about certificates whose answers are awaited.
#[derive(Default)]
pub(crate) struct AcmeQuestions {
    /// Pages of the status, and what waits for the end of an order.
    waiting: JoinSet<Answered>,
}

/// An answer of the issuer, or none, and what it is for.
pub(crate) struct Answered {
    report: Result<Report, &'static str>,
    purpose: Purpose,
}

/// The purpose of an answer, with the pages that are there already.
enum Purpose {
    /// Somebody who asked by `kettle ctl acme`.
    Reply(AcmeStatus, oneshot::Sender<Reply>),
    /// When something is done next, for the metrics.
    Metrics(Vec<(String, u64)>),
}

impl Purpose {
    fn add(&mut self, total: usize, sites: Vec<SiteStatus>) {
        match self {
            Self::Reply(gathered, _) => gathered.add(total, sites),
            Self::Metrics(next) => {
                let own = sites.into_iter().filter(|it| it.what != OF_ANOTHER_SERVER);
                next.extend(own.map(|it| (it.site, it.next)));
            }
        }
    }

    /// Hands over what is there.
    fn done(self, reply: impl FnOnce(AcmeStatus) -> Reply, counters: &AcmeCounters) {
        match self {
            // The caller may be gone.
            Self::Reply(gathered, asker) => drop(asker.send(reply(gathered))),
            Self::Metrics(next) => counters.set_next(next),
        }
    }
}

impl AcmeQuestions {
    /// Passes a request on.
    pub(crate) fn begin(
        &mut self,
        request: AcmeRequest,
        (config, issuer): (&Config, &mut Issuer),
        asker: oneshot::Sender<Reply>,
    ) {
        let late = match request {
            AcmeRequest::Revoke { .. } => REVOKED_LATER,
            _ => NO_ANSWER,
        };
        let order = match order_of(request, config) {
            Ok(order) => order,
            Err(refused) => {
                // The caller may be gone.
                let _ = asker.send(refused);
                return;
            }
        };
        self.ask(issuer, Purpose::Reply(AcmeStatus::default(), asker), late, order);
    }

    /// Asks when something is done next for each certificate, if it is time for that.
    pub(crate) fn look(&mut self, issuer: &mut Issuer) {
        if issuer.is_to_be_asked(Instant::now()) {
            let order = |number| Order::Status { number, from: 0 };
            self.ask(issuer, Purpose::Metrics(Vec::new()), NO_ANSWER, order);
        }
    }

    /// The next answer; for ever none while nothing is asked.
    pub(crate) async fn next(&mut self) -> Option<Answered> {
        self.waiting.join_next().await?.ok()
    }

    /// Takes an answer, and asks for the next page where there is one.
    pub(crate) fn take(&mut self, answered: Answered, issuer: &mut Issuer) {
        let Answered { report, mut purpose } = answered;
        match report {
            Ok(Report::Sites { total, from, sites, .. }) => {
                let next = from + sites.len();
                let has_more = !sites.is_empty() && next < total;
                purpose.add(total, sites);
                if has_more {
                    let order = move |number| Order::Status { number, from: next };
                    return self.ask(issuer, purpose, NO_ANSWER, order);
                }
                purpose.done(|gathered| Reply::Acme { certificates: gathered }, issuer.counters());
            }
            Ok(Report::Records { records, next, .. }) => {
                purpose.done(|_| Reply::DnsRecords { records, next }, issuer.counters());
            }
            Ok(Report::Done { message, is_refused: false, .. }) => {
                purpose.done(|_| Reply::done(message), issuer.counters());
            }
            Ok(Report::Done { message, .. }) => {
                purpose.done(|_| Reply::refused(message), issuer.counters());
            }
            Ok(_) => purpose.done(|_| Reply::refused(NO_ANSWER), issuer.counters()),
            Err(why) => purpose.done(|_| Reply::refused(why), issuer.counters()),
        }
    }

    fn ask(
        &mut self,
        issuer: &mut Issuer,
        purpose: Purpose,
        late: &'static str,
        order: impl FnOnce(u64) -> Order,
    ) {
        let answer = issuer.ask(order);
        self.waiting
            .spawn(async move { Answered { report: report_of(answer, late).await, purpose } });
    }
}

/// Returns the issuer's report, or the reason why there is none: `late`, if it takes its time.
async fn report_of(
    answer: oneshot::Receiver<Report>,
    late: &'static str,
) -> Result<Report, &'static str> {
    timeout(ANSWER_TIME_MAX, answer).await.map_err(|_| late)?.map_err(|_| NO_ANSWER)
}

/// The order for a request; of a certificate the issuer knows the first name.
fn order_of(request: AcmeRequest, config: &Config) -> Result<Box<dyn FnOnce(u64) -> Order>, Reply> {
    let site = |name: &str| {
        let names = || config.wanted_certificates().map(|wanted| wanted.names);
        let mut having = names().filter(|names| names.iter().any(|own| own.value == name));
        let first = having.next().and_then(|names| names.first());
        first.map(|first| first.value.clone()).ok_or_else(|| {
            let all: Vec<&str> = names().flatten().map(|own| own.value.as_str()).collect();
            let meant = closest(name, &all).map(|it| format!("; is it {it}?"));
            Reply::refused(format!(
                "no certificate is fetched for {name}{}",
                meant.unwrap_or_default()
            ))
        })
    };
    Ok(match request {
        AcmeRequest::Status => Box::new(|number| Order::Status { number, from: 0 }),
        AcmeRequest::DnsRecords { from } => Box::new(move |number| Order::Records { number, from }),
        AcmeRequest::Renew { name, rehearse } => {
            let site = site(&name)?;
            Box::new(move |number| Order::Renew { number, site, rehearse })
        }
        AcmeRequest::Forget { name } => {
            let site = site(&name)?;
            Box::new(move |number| Order::Forget { number, site })
        }
        AcmeRequest::Revoke { name, reason } => {
            let site = site(&name)?;
            Box::new(move |number| Order::Revoke { number, site, reason })
        }
    })
}

const NO_ANSWER: &str = "the process that fetches certificates does not run, or has too much to do: look at `kettle ctl status` and at the \
     log; without an [[acme]] in the configuration there is none";

const REVOKED_LATER: &str = "the authority has not answered yet, and is asked for up to ten minutes: the log says what comes of it";

/// The time an issuer is waited for, which writes to a disk at most, or asks an authority: less than `kettle ctl` waits, which is to hear why.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody hears at the control socket what comes later than the caller waits.
    #[tokio::test(start_paused = true)]
    async fn an_authority_that_takes_its_time_is_told_of_while_the_caller_waits() {
        let begun = tokio::time::Instant::now();
        let (asker, answer) = oneshot::channel();
        assert_eq!(report_of(answer, REVOKED_LATER).await.unwrap_err(), REVOKED_LATER);
        assert!(begun.elapsed() < crate::admin::client::REPLY_TIMEOUT);
        drop(asker);
        let (asker, answer) = oneshot::channel::<Report>();
        drop(asker);
        assert_eq!(report_of(answer, REVOKED_LATER).await.unwrap_err(), NO_ANSWER);
    }

    #[test]
    fn a_certificate_is_known_by_each_of_its_names() {
        let text = "[[acme]]\nname = \"own\"\ndirectory = \"letsencrypt\"\naccept_terms = true\n\
                    [[listener]]\naddress = \"127.0.0.1:443\"\n\
                    [[site]]\nnames = [\"a.org\", \"www.a.org\"]\nacme = {}\nroute = [{ root = \"/\" }]\n";
        let config = kettle_config::parse(text, "kettle.toml".as_ref()).unwrap();
        let of = |name: &str| {
            let name = name.to_owned();
            let order = order_of(AcmeRequest::Renew { name, rehearse: true }, &config);
            order.map(|order| order(7))
        };
        for name in ["a.org", "www.a.org"] {
            let expected = Order::Renew { number: 7, site: "a.org".to_owned(), rehearse: true };
            assert_eq!(of(name).ok(), Some(expected), "{name}");
        }
        let Err(Reply::Refused { message, .. }) = of("ww.a.org") else { panic!("an order") };
        assert_eq!(message, "no certificate is fetched for ww.a.org; is it www.a.org?");
    }
}
