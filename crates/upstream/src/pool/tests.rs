use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::backend::Backends;
use crate::backend::tests::{self, CLIENT, at, listener};
use crate::{InFlight, Trace};

/// A backend with one server.
fn app(address: impl ToString) -> Arc<Upstream> {
    let (_, upstreams) = in_force(address, None);
    Arc::clone(upstreams.find("app").unwrap())
}

fn in_force(address: impl ToString, before: Option<&Backends>) -> (Backends, Upstreams) {
    in_force_with(address, before, kettle_config::Backend::default())
}

fn in_force_with(
    address: impl ToString,
    before: Option<&Backends>,
    settings: kettle_config::Backend,
) -> (Backends, Upstreams) {
    let kettle_config::Backend { name, servers, .. } = tests::settings(vec![at(address)]);
    let settings = kettle_config::Backend { name, servers, ..settings };
    let backends = Backends::new(&[settings], before);
    let upstreams = Upstreams::new(&backends, &HashMap::new());
    (backends, upstreams)
}

/// Keeps a connection to the only server of `app`, and returns its far end.
async fn keep_one(pool: &Rc<Pool>, app: &Arc<Upstream>, server: &TcpListener) -> TcpStream {
    let mut attempts = app.backend.attempts(CLIENT);
    let mut upstream = Arc::clone(app);
    let mut trace = Trace::default();
    let begun = InFlight::begin(&mut upstream, pool, &mut attempts, crate::Reuse::Any, &mut trace);
    let InFlight { link, lease, .. } = begun.await.unwrap();
    let (far, _) = server.accept().await.unwrap();
    lease.keep(link);
    far
}

#[tokio::test]
async fn a_connection_is_kept_for_as_long_as_its_server_s_name_has_its_address() {
    let listener = listener().await;
    let here = listener.local_addr().unwrap();
    let elsewhere = SocketAddr::from(([192, 0, 2, 1], 1));
    let pool = Rc::<Pool>::default();
    let app = app("app.example:1");
    let server = &app.backend.servers[0];
    let take = || pool.take(&app, server, Instant::now());
    let find = |at: &[_]| server.state.found_at(at);
    find(&[here]);
    let _far = keep_one(&pool, &app, &listener).await;
    for addresses in [&[here][..], &[elsewhere, here]] {
        find(addresses);
        let (link, destination) = take().expect("its address is still one of its server's");
        pool.give(link, destination, &app.backend);
    }
    find(&[elsewhere]);
    assert!(take().is_none());
}

#[tokio::test]
async fn what_no_backend_in_force_leads_to_is_not_kept() {
    let listener = listener().await;
    let address = listener.local_addr().unwrap();
    let (before, upstreams) = in_force(address, None);
    let pool = Rc::<Pool>::default();
    let app = upstreams.find("app").unwrap();
    let take = || pool.take(app, &app.backend.servers[0], Instant::now());
    let _far = keep_one(&pool, app, &listener).await;
    // The same server, by whatever reload.
    pool.adopt(Arc::new(in_force(address, Some(&before)).1));
    let (link, destination) = take().unwrap();
    pool.give(link, destination, &app.backend);
    pool.adopt(Arc::new(in_force("192.0.2.1:1", Some(&before)).1));
    assert!(pool.idle.borrow().is_empty());
    // The connection that was under way meanwhile.
    let _far = keep_one(&pool, app, &listener).await;
    assert!(pool.idle.borrow().is_empty());
    pool.adopt(Arc::default());
    let _far = keep_one(&pool, app, &listener).await;
    assert!(pool.idle.borrow().is_empty());
}

#[tokio::test]
async fn connections_are_kept_for_as_long_as_the_configuration_in_force_says() {
    let listener = listener().await;
    let address = listener.local_addr().unwrap();
    let (before, upstreams) = in_force(address, None);
    let pool = Rc::<Pool>::default();
    let app = upstreams.find("app").unwrap();
    let _far = keep_one(&pool, app, &listener).await;
    let reload = |settings| {
        pool.adopt(Arc::new(in_force_with(address, Some(&before), settings).1));
    };
    let second = Duration::from_secs(1);
    reload(kettle_config::Backend { keep_alive_timeout: second, ..Default::default() });
    assert!(untils(&pool)[0] <= Instant::now() + second);
    // One that was in use meanwhile.
    let (link, destination) = pool.take(app, &app.backend.servers[0], Instant::now()).unwrap();
    pool.give(link, destination, &app.backend);
    assert!(untils(&pool)[0] <= Instant::now() + second);
    reload(kettle_config::Backend { keep_alive: Some(0), ..Default::default() });
    assert!(pool.idle.borrow().is_empty());
    let _far = keep_one(&pool, app, &listener).await;
    assert!(pool.idle.borrow().is_empty());
}

/// Until when connections are kept.
fn untils(pool: &Pool) -> Vec<Instant> {
    pool.idle.borrow().values().flatten().map(|idle| idle.until).collect()
}

#[tokio::test]
async fn those_of_a_burst_that_are_too_many_stay_for_a_moment() {
    let listener = listener().await;
    let settings = kettle_config::Backend { keep_alive: Some(2), ..Default::default() };
    let upstreams = in_force_with(listener.local_addr().unwrap(), None, settings).1;
    let pool = Rc::<Pool>::default();
    let app = upstreams.find("app").unwrap();
    let take = || pool.take(app, &app.backend.servers[0], Instant::now());
    let mut under_way = Vec::new();
    let mut far = Vec::new();
    for _ in 0..20 {
        far.push(keep_one(&pool, app, &listener).await);
        under_way.push(take().unwrap());
    }
    for (link, destination) in under_way.drain(..) {
        pool.give(link, destination, &app.backend);
    }
    let moment = Instant::now() + BURST_STAYS;
    let is_kept: Vec<_> = untils(&pool).into_iter().map(|until| until > moment).collect();
    assert_eq!(is_kept, [[false; 14].as_slice(), &[true; 2]].concat());
    // The next burst needs no new ones.
    assert_eq!(std::iter::from_fn(take).count(), 16);
    assert!(untils(&pool).is_empty());
}

#[test]
fn where_tls_is_spoken_no_server_is_spoken_to_in_plain_text() {
    let plain = app("192.0.2.1:1");
    let server = &plain.backend.servers[0];
    assert!(plain.connector(server).unwrap().is_none());
    let over_tls = Upstream::new(Arc::clone(&plain.backend), Some(Arc::new([])));
    assert!(over_tls.connector(server).is_err());
}
