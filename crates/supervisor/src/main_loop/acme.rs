//! What `kettle ctl acme` asks, passed on to the issuer, and its answers on their way back.

use kettle_acme::protocol::{Order, Report};
use kettle_config::{Config, closest};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::admin::acme::{AcmeRequest, AcmeStatus};
use crate::admin::protocol::Reply;
use crate::issuer::Issuer;

/// Questions about certificates whose answers are awaited.
#[derive(Default)]
pub(crate) struct AcmeQuestions {
    /// Pages of the status, and what waits for the end of an order.
    waiting: JoinSet<Answered>,
}

/// An answer of the issuer, or none, and where it goes.
pub(crate) struct Answered {
    report: Option<Report>,
    gathered: AcmeStatus,
    asker: oneshot::Sender<Reply>,
}

impl AcmeQuestions {
    /// Passes a request on.
    pub(crate) fn begin(
        &mut self,
        request: AcmeRequest,
        (config, issuer): (&Config, &mut Issuer),
        asker: oneshot::Sender<Reply>,
    ) {
        let order = match order_of(request, config) {
            Ok(order) => order,
            Err(refused) => {
                // The caller may be gone.
                let _ = asker.send(refused);
                return;
            }
        };
        self.ask(issuer, AcmeStatus::default(), asker, order);
    }

    /// The next answer; for ever none while nothing is asked.
    pub(crate) async fn next(&mut self) -> Option<Answered> {
        self.waiting.join_next().await?.ok()
    }

    /// Takes an answer, and asks for the next page where there is one.
    pub(crate) fn take(&mut self, answered: Answered, issuer: &mut Issuer) {
        let Answered { report, mut gathered, asker } = answered;
        let reply = match report {
            Some(Report::Sites { total, from, sites, .. }) => {
                let next = from + sites.len();
                let has_more = !sites.is_empty() && next < total;
                gathered.add(total, sites);
                if has_more {
                    let order = move |number| Order::Status { number, from: next };
                    return self.ask(issuer, gathered, asker, order);
                }
                Reply::Acme { certificates: gathered }
            }
            Some(Report::Done { message, is_refused: false, .. }) => Reply::done(message),
            Some(Report::Done { message, .. }) => Reply::refused(message),
            _ => Reply::refused(NO_ANSWER),
        };
        // The caller may be gone.
        let _ = asker.send(reply);
    }

    fn ask(
        &mut self,
        issuer: &mut Issuer,
        gathered: AcmeStatus,
        asker: oneshot::Sender<Reply>,
        order: impl FnOnce(u64) -> Order,
    ) {
        let answer = issuer.ask(order);
        self.waiting.spawn(async move { Answered { report: answer.await.ok(), gathered, asker } });
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
