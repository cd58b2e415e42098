//! The content in place of an error, the headers of responses that came by several routes, and queries of a rewrite.

use kettle_exchange::request::Request;
use kettle_http::h1::framing::BodyFraming;

use super::routes::server;
use super::stage::head;
use crate::respond::respond;

const PAGES: &str = r#"
    error_pages = { 404 = { route = "/404.html" }, 401 = { route = "/404.html" }, 405 = { route = "/404.html" } }
    [[site.route]]
    root = "root"
    headers = { X-Own = "1" }
    [[site.route]]
    exact = "/404.html"
    root = "root"
    internal = true
    headers = { X-Page = "1", X-Always = "2" }
    always = ["x-always"]
    [[site.route]]
    prefix = "/well"
    respond = { status = 404 }
    error_pages = { 404 = { route = "/b/", status = 200 } }
"#;

#[tokio::test]
async fn a_request_is_what_it_was_behind_its_page() {
    let server = server(PAGES);
    let text = "POST /none?y=1 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1\r\n\r\n";
    let mut request = Request::without_body(head(text), None);
    request.body.set_framing(BodyFraming::Length(9));
    let mut answer = respond(&server.responder, &server.router, &mut request).await;
    assert_eq!(answer.response_mut().unwrap().status, 405);
    assert_eq!(request.head.method().as_str(), "POST");
    assert_eq!(request.head.target().unwrap().query, Some("y=1"));
    assert!(request.head.header("range").is_some());
    assert_eq!(request.body.framing(), BodyFraming::Length(9));
}
