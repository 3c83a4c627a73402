//! Entering a namespace: the sentinel that says which instance it is.

use super::*;

impl RedisConn {
    pub(super) fn was_reset(&self, call: &Call) -> StoreError {
        let namespace = self.0.config.namespace.to_string();
        let mut state = lock(&self.0.state);
        if state.sentinel.as_ref() == Some(&call.sentinel) {
            tracing::debug!(%namespace, "the store was reset; a new namespace is made");
            state.sentinel = None;
        }
        StoreError::Reset { namespace }
    }

    /// The id of the namespace's instance.
    pub(crate) async fn instance(&self) -> Result<String, StoreError> {
        self.sentinel().await.map(|sentinel| checks::instance_of(&sentinel).to_owned())
    }

    /// The sentinel of the namespace, which is made when it is not known.
    pub(super) async fn sentinel(&self) -> Result<Arc<str>, StoreError> {
        let known = || lock(&self.0.state).sentinel.clone();
        if let Some(sentinel) = known() {
            return Ok(sentinel);
        }
        let _only_one = self.0.entering.lock().await;
        if let Some(sentinel) = known() {
            return Ok(sentinel);
        }
        let sentinel: Arc<str> = self.enter().await?.into();
        lock(&self.0.state).sentinel = Some(Arc::clone(&sentinel));
        Ok(sentinel)
    }

    async fn enter(&self) -> Result<String, StoreError> {
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.0.scripts.hash(Script::Init)).arg(1).arg(self.0.keys.meta());
        command.arg(format!("{LAYOUT} {}", Random.token()));
        command.arg(if self.0.config.join { "1" } else { "0" });
        let sentinel: Arc<str> = "".into();
        let call = Call::new(Script::Init, command, sentinel);
        // A namespace is entered by one call, which is not worth a second way of sending.
        let reply = Box::pin(self.send(call, &natural())).await?;
        let Value::BulkString(text) = reply else { return Err(crate::error::unreadable("meta")) };
        let text = String::from_utf8_lossy(&text).into_owned();
        checks::layout(&text, LAYOUT)?;
        checks::instance(&text, &self.0.config)?;
        Ok(text)
    }
}
