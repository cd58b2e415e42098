//! A stream that becomes a tunnel (extended CONNECT, RFC 8441): its response's head, and what both sides say behind it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;

use super::Shared;
use crate::connection::cycle::Arrival;
use crate::connection::upgraded::TunnelEnds;
use crate::deliver::Delivered;
use crate::http1::{Edge, write_head};
use crate::http2::{OutboundStream, TunnelStream, response_head};
use crate::relay::Side;
use crate::request::Head;
use crate::response::{Body, Response};
use crate::tunnel::{Client, Tunnel};

impl Shared {
    /// Sends the head of a response that makes a tunnel of its stream, logs it, and carries the tunnel to its end.
    pub(super) async fn carry(
        &self,
        respond_with: &RefCell<SendResponse<Bytes>>,
        receive: RecvStream,
        outbound: OutboundStream,
        head: Box<Head>,
        mut response: Response,
        arrival: Arrival,
    ) {
        let worker = self.connection.borrow().worker.shared();
        let edge = Edge {
            date_line: worker.date_line(),
            version: None,
            is_head: false,
            is_tls: true,
            closes: false,
        };
        let mut bytes = worker.head_buffer();
        write_head(&mut bytes, &mut response, &edge);
        let fields = response_head(response.status, &bytes);
        let send = respond_with.borrow_mut().send_response(fields, false);
        let completed = send.is_ok();
        let path = self.outbound.path();
        let delivered = Delivered { path, reason: None, body_bytes: 0, completed };
        let began = Instant::now();
        let ends = {
            let connection = self.connection.borrow();
            let bytes_sent = bytes.len() as u64;
            let head = Some(&*head);
            connection.log(&self.session, head, &response, bytes_sent, &delivered, &arrival);
            match response.body {
                Body::Upgraded(upgraded) => connection.tunnel_ends(*upgraded, self.peer),
                _ => None,
            }
        };
        worker.recycle(bytes);
        drop((head, arrival));
        let (Ok(send), Some(ends)) = (send, ends) else { return self.note_end(false) };
        let TunnelEnds { settings, peers, connected, in_use } = ends;
        let (body_bytes, ending) = (Arc::clone(&self.body_bytes), outbound.ending());
        let stream = TunnelStream::new((receive, send), outbound, self.session.clone(), body_bytes);
        let client = Client { side: Side::from(stream), received: Vec::new(), server_name: None };
        let deadline = self.take_deadline();
        let number = self.connection.borrow().number;
        let tunnel = Tunnel::new(
            (worker, None),
            Rc::clone(&deadline),
            Arc::new(settings),
            peers,
            number,
            began,
        );
        tunnel.carry_between(client, connected).await;
        drop(in_use);
        self.deadlines.borrow_mut().push(deadline);
        self.note_end(ending.is_sent());
    }
}
