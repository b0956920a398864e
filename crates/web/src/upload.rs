//! Reading the body of a request, within its bounds.
//!
//! A body that says it is too long is refused before a byte of it is read, and one that turns out
//! to be is refused there; the rest is never read and the connection ends. A body has one deadline
//! for all of it. Beyond a few KiB it counts as an upload, of which only so many run at once.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::Version;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use crate::call::{Call, RETRY_SOON};
use crate::fault::{Code, Fault};
use crate::limits::Limit;

/// A body that needs more than this counts as an upload: most documents and every event fit.
const SMALL_BODY_BYTES: usize = 8 << 10;

/// A body, and the place of a large one until this is dropped.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) bytes: Bytes,
    pub(crate) place: Option<OwnedSemaphorePermit>,
}

/// Reads the body of `call`, which must be at most `len_max` bytes long.
///
/// Not cancel-safe: what was read is lost.
pub(crate) async fn receive(call: &mut Call, len_max: usize) -> Result<Upload, Fault> {
    let received = read(call, len_max).await;
    // What was not read would be taken for the next request.
    received.map_err(|fault| closing(call.head.version, fault))
}

async fn read(call: &mut Call, len_max: usize) -> Result<Upload, Fault> {
    let face = call.face.clone();
    let too_large = || {
        face.metrics.refused(Limit::BodyBytes);
        let detail = format!("a body has at most {len_max} bytes");
        Fault::detailed(Code::TooLarge, detail)
    };
    let late = |limit| {
        face.metrics.refused(limit);
        match limit {
            Limit::Memory | Limit::Uploads => Fault::new(Code::Busy).retry_after(RETRY_SOON),
            _ => Fault::new(Code::SlowBody),
        }
    };
    let announced = call.body.size_hint();
    if announced.lower() > len_max as u64 {
        return Err(too_large());
    }
    let deadline = Instant::now() + face.limits.request_timeout;
    let mut bytes = BytesMut::new();
    let mut place = None;
    loop {
        if place.is_none()
            && bytes.len() as u64 + call.body.size_hint().lower() > SMALL_BODY_BYTES as u64
        {
            if face.memory.is_over() {
                return Err(late(Limit::Memory));
            }
            let taken = timeout_at(deadline, face.uploads.clone().acquire_owned()).await;
            place = taken.map_err(|_| late(Limit::Uploads))?.ok();
        }
        let read = timeout_at(deadline, next(&mut call.body)).await;
        match read.map_err(|_| late(Limit::RequestTimeout))?? {
            None => {
                let bytes = bytes.freeze();
                return Ok(Upload { bytes, place });
            }
            Some(piece) if bytes.len() + piece.len() > len_max => return Err(too_large()),
            Some(piece) => bytes.extend_from_slice(&piece),
        }
    }
}

/// The next piece; trailers are passed over.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Fault> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(piece) = frame.into_data() {
                    return Ok(Some(piece));
                }
            }
            Some(Err(_)) => return Err(Fault::detailed(Code::BadBody, "it ended early")),
        }
    }
}

/// The refusal with which an HTTP/1 connection ends.
fn closing(version: Version, fault: Fault) -> Fault {
    if version == Version::HTTP_2 {
        return fault;
    }
    fault.header(CONNECTION, HeaderValue::from_static("close"))
}
