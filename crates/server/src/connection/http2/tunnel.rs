//! A stream that becomes a tunnel (extended CONNECT, RFC 8441): its response's head, and what both sides say behind it.

use std::rc::Rc;

use super::Shared;
use crate::connection::http1::RequestStart;
use crate::deliver::Delivered;
use crate::http2::{Http2Stream, Http2Tunnel};
use crate::relay::Side;
use kettle_exchange::request::Head;
use kettle_exchange::response::{Response, Upgraded};
use kettle_exchange::response_head::{Edge, write_head};

impl Shared {
    /// Sends the head of a response that makes a tunnel of its stream, logs it, and carries the tunnel to its end.
    pub(super) async fn carry(
        &self,
        stream: Http2Stream,
        head: Box<Head>,
        mut response: Response,
        upgraded: Upgraded,
        start: RequestStart,
    ) {
        let worker = Rc::clone(&self.connection.borrow().worker);
        let edge = Edge::of_http2(worker.date_line(), false, self.session.is_some());
        let edge = Edge { begins_tunnel: true, ..edge };
        let mut bytes = worker.heads.take();
        write_head(&mut bytes, &mut response, &edge);
        let completed = stream.send_head(response.status, &bytes, false).is_ok();
        let path = stream.path();
        let delivered = Delivered { path, reason: None, body_bytes: 0, completed };
        let ends = {
            let connection = self.connection.borrow();
            let bytes_sent = bytes.len() as u64;
            let head = Some(&*head);
            connection.log(
                self.session.as_ref(),
                head,
                response.logged(),
                bytes_sent,
                &delivered,
                &start,
            );
            connection.tunnel_ends(upgraded, self.peer)
        };
        worker.heads.give(bytes);
        drop((head, response, start));
        let Some(ends) = ends.filter(|_| completed) else { return self.note_end(false) };
        let progress = stream.progress();
        let client = Side::Stream(Box::new(Http2Tunnel::new(stream, self.session.clone())));
        let deadline = self.take_deadline();
        let number = self.connection.borrow().number;
        ends.carry((client, Vec::new()), (worker, None), Rc::clone(&deadline), number).await;
        self.deadlines.borrow_mut().push(deadline);
        self.note_end(progress.is_taken());
    }
}
