//! The compressed form of a stored object. It is made once, by a thread, when it is asked for a second time: the first client had the object as it
//! arrived. Until the form is at hand, responses are compressed on their way.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kettle_config::Coding;
use kettle_exchange::response::Body;
use kettle_http::range::ByteRange;
use kettle_runtime::disk::Device;
use kettle_runtime::encoder::compress;
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::{CachedRoute, WRITE_TIME_MAX, device};
use crate::files::entry::Content;
use crate::files::handler::Files;
use crate::files::object::{ReadyForm, ReadyObject};

/// The knowledge of an object in a coding.
#[derive(Debug)]
pub enum CodedForm {
    Smaller(Body),
    /// The coding makes it no smaller.
    NoSmaller,
    /// It is not at hand; it may be for later requests.
    NotAtHand,
}

/// Looks for the form of an object in a coding, and has it made if it is not there.
pub fn coded_form(
    route: &CachedRoute,
    files: &Files,
    stored: Rc<dyn Any>,
    coding: Coding,
) -> CodedForm {
    let (Ok(object), Some(open)) = (stored.downcast::<ReadyObject>(), route.store.get()) else {
        return CodedForm::NotAtHand;
    };
    if object.body.bytes > PLAIN_BYTES_MAX {
        return CodedForm::NotAtHand;
    }
    let device = device(files.disks(), open);
    let Some(ReadyForm { content, body }) =
        object.form_at_once(coding, &device, files.clock(), files.memory())
    else {
        route.keep_form(device, files, &object, coding);
        return CodedForm::NotAtHand;
    };
    match content {
        _ if body.bytes == 0 => CodedForm::NoSmaller,
        Content::Memory(bytes) => CodedForm::Smaller(Body::Memory(bytes)),
        Content::File(file) => {
            let span = ByteRange { start: body.offset, bytes: body.bytes };
            CodedForm::Smaller(Body::File { file, span })
        }
    }
}

impl CachedRoute {
    /// Has a form kept that is not at hand, unless another is on its way.
    fn keep_form(&self, device: Arc<Device>, files: &Files, object: &ReadyObject, coding: Coding) {
        let Some(permit) = files.encoders().form_permit() else { return };
        let disks = files.disks().within(WRITE_TIME_MAX);
        let encoders = files.encoders().clone();
        let store = Arc::clone(&self.store);
        let keep = object.keeping_form(coding, move |plain| compress(coding, plain));
        spawn_local(async move {
            let Some(encoder) = encoders.take().await else { return };
            let keep = move || {
                let kept = keep();
                drop(encoder);
                (kept, permit)
            };
            // A disk that does not answer has the permit until it does.
            let Ok((Err(error), permit)) = disks.wait_for(&device, keep).await else { return };
            // The answer to a request that was purged meanwhile says nothing of others.
            if error.is_for_the_operator() {
                store.failed(&error);
                sleep(AFTER_FAILURE).await;
            }
            drop(permit);
        });
    }
}

/// The longest object with forms. Its bytes and those of its form are in memory while the form is made.
const PLAIN_BYTES_MAX: u64 = 1 << 20;

/// The time no form is made after one could not be kept: each would be made in vain.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
