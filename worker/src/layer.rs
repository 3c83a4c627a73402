//! The executor and the layers that users put around it, as one function.

use std::{
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use holdpoint_executor::{Claimed, Outcome};

use crate::job::{Handler, LayerError};

/// The executor with the layers around it so far: what a further layer is put around.
#[derive(Clone)]
pub struct Execute(pub(crate) Handler);

impl fmt::Debug for Execute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execute").finish_non_exhaustive()
    }
}

impl tower::Service<Claimed> for Execute {
    type Response = Outcome;
    type Error = LayerError;
    type Future = BoxFuture<'static, Result<Outcome, LayerError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LayerError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, claimed: Claimed) -> Self::Future {
        (self.0)(claimed)
    }
}

/// A service as a function.
pub(crate) fn handler<S>(service: S) -> Handler
where
    S: tower::Service<Claimed, Response = Outcome> + Clone + Send + Sync + 'static,
    S::Error: Into<LayerError>,
    S::Future: Send,
{
    Arc::new(move |claimed| {
        let mut service = service.clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            service.call(claimed).await.map_err(Into::into)
        })
    })
}
