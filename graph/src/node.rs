//! Nodes: one async function over the state, and how it is run.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Code, Gate, IntoUpdate, NodeContext, Refusal, State, Update, limits::ERROR_CODE_CHARS_MAX,
};

/// A boxed future, as node functions and ports return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A node's function, as it is held by a compiled graph.
pub type NodeFunc =
    Arc<dyn Fn(NodeContext, State) -> BoxFuture<'static, Result<Update, NodeError>> + Send + Sync>;

/// What may be done with a node or step whose outcome is unknown: after a crash, a panic, a
/// time-out, or an error that does not say that nothing happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing outside changes: it runs again.
    Pure,
    /// It may run again with the same idempotency key.
    #[default]
    Idempotent,
    /// It must not run again silently: the run parks with an `uncertain` interrupt.
    Unsafe,
}

impl Effect {
    /// The word for it, as in drawings and fingerprints.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Idempotent => "idempotent",
            Self::Unsafe => "unsafe",
        }
    }
}

/// How often and how soon a failed node runs again.
///
/// The wait before attempt n + 1 is drawn from 0 to min(cap, base · factor^(n-1)) ("full jitter"),
/// but never below a tenth of that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    attempts: u32,
    base: Duration,
    factor: f64,
    cap: Duration,
}

impl Default for RetryPolicy {
    /// 5 attempts, base 1 s, factor 2, cap 5 min.
    fn default() -> Self {
        Self {
            attempts: 5,
            base: Duration::from_secs(1),
            factor: 2.0,
            cap: Duration::from_secs(300),
        }
    }
}

impl RetryPolicy {
    /// A policy of `attempts` runs in all, the first included.
    ///
    /// # Errors
    /// `E_RANGE` for 0 or more than 1,000 attempts, a factor below 1 or not finite, a base above
    /// the cap or a cap above a day.
    pub fn new(attempts: u32, base: Duration, factor: f64, cap: Duration) -> Result<Self, Refusal> {
        let no = |field: &str, why: String| Err(Refusal::new(Code::Range, field, why));
        if !(1..=1_000).contains(&attempts) {
            return no("attempts", format!("is {attempts}, allowed are 1 to 1000"));
        }
        if !factor.is_finite() || !(1.0..=1_000.0).contains(&factor) {
            return no("factor", format!("is {factor}, allowed are 1 to 1000"));
        }
        if base > cap || cap > Duration::from_secs(86_400) {
            return no("cap", format!("is {cap:?}, allowed are the base ({base:?}) to a day"));
        }
        Ok(Self { attempts, base, factor, cap })
    }

    /// The first error is final.
    #[must_use]
    pub fn once() -> Self {
        Self { attempts: 1, ..Self::default() }
    }

    /// `attempts` runs in all with the same wait between them, without jitter.
    #[must_use]
    pub fn fixed(attempts: u32, wait: Duration) -> Self {
        Self { attempts: attempts.clamp(1, 1_000), base: wait, factor: 1.0, cap: wait }
    }

    /// How many runs in all.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The wait after `failures` failed runs; `chance` is a random number from 0 to 1.
    ///
    /// ```
    /// use holdpoint_graph::RetryPolicy;
    /// let policy = RetryPolicy::default();
    /// assert_eq!(policy.wait(1, 1.0).as_secs(), 1);
    /// assert_eq!(policy.wait(4, 1.0).as_secs(), 8);
    /// assert_eq!(policy.wait(4_000_000, 1.0).as_secs(), 300);
    /// ```
    #[must_use]
    pub fn wait(&self, failures: u32, chance: f64) -> Duration {
        let power = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let full = self.base.as_secs_f64() * self.factor.powi(power);
        let full = full.min(self.cap.as_secs_f64());
        let is_fixed = self.base == self.cap;
        let share = if is_fixed { 1.0 } else { chance.clamp(0.1, 1.0) };
        Duration::try_from_secs_f64(full * share).unwrap_or(self.cap)
    }
}

/// A node's failure, as its function returns it.
///
/// Any error becomes a retryable one by `?`; the other kinds are made by name.
///
/// ```
/// use holdpoint_graph::NodeError;
/// fn total(text: &str) -> Result<u32, NodeError> {
///     Ok(text.parse::<u32>()?)
/// }
/// assert!(!total("x").unwrap_err().is_permanent());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeError {
    message: String,
    code: String,
    kind: ErrorKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorKind {
    Retryable,
    RetryAfter(Duration),
    Permanent,
}

impl NodeError {
    /// The node runs again, by its policy.
    pub fn retryable(message: impl fmt::Display) -> Self {
        Self::made(message, ErrorKind::Retryable)
    }

    /// The node runs again after `wait`, as its policy has attempts left. An unsafe node says with
    /// it that its effect did not happen; any other error that is not permanent is asked about.
    pub fn retry_after(wait: Duration, message: impl fmt::Display) -> Self {
        Self::made(message, ErrorKind::RetryAfter(wait))
    }

    /// The node does not run again; the run fails.
    pub fn permanent(message: impl fmt::Display) -> Self {
        Self::made(message, ErrorKind::Permanent)
    }

    fn made(message: impl fmt::Display, kind: ErrorKind) -> Self {
        let message = crate::clip_error(&message.to_string());
        Self { message, code: "node_error".to_owned(), kind }
    }

    /// The same error under a code of the caller's, shown beside the message.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into().chars().take(ERROR_CODE_CHARS_MAX).collect();
        self
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The code; `node_error` when the node named none.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Whether another attempt is pointless.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.kind == ErrorKind::Permanent
    }

    /// The wait that the error itself asks for.
    #[must_use]
    pub const fn wait(&self) -> Option<Duration> {
        match self.kind {
            ErrorKind::RetryAfter(wait) => Some(wait),
            ErrorKind::Retryable | ErrorKind::Permanent => None,
        }
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: std::error::Error> From<E> for NodeError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause.filter(|_| text.len() < 4 * crate::limits::ERROR_CHARS_MAX) {
            text.push_str(&format!(": {inner}"));
            cause = inner.source();
        }
        Self::retryable(text)
    }
}

/// What a node has besides its function.
#[derive(Debug, Clone, Default)]
pub struct NodeOptions {
    pub(crate) title: Option<String>,
    pub(crate) effect: Effect,
    pub(crate) retry: RetryPolicy,
    pub(crate) timeout: Option<Duration>,
    pub(crate) gate: Option<Gate>,
    pub(crate) goto: Vec<Goto>,
}

/// A goto target: what the node says, and where that leads once sub-graphs are inlined.
#[derive(Debug, Clone)]
pub(crate) struct Goto {
    pub(crate) said: String,
    pub(crate) target: String,
}

impl NodeOptions {
    /// Idempotent, the default retries, the runner's time limit, no gate, no goto.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The text that drawings show in place of the id.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What may be done after a crash inside the node.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// How often and how soon the node runs again after an error.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// The longest that one attempt may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The question that must be answered before the node starts.
    #[must_use]
    pub fn gate(mut self, gate: Gate) -> Self {
        self.gate = Some(gate);
        self
    }

    /// The nodes that the node may `goto`, besides its edges.
    #[must_use]
    pub fn goto_targets<I: Into<String>>(mut self, targets: impl IntoIterator<Item = I>) -> Self {
        let goto = targets.into_iter().map(Into::into);
        self.goto.extend(goto.map(|target: String| Goto { said: target.clone(), target }));
        self
    }
}

/// A node of a graph.
#[derive(Clone)]
pub struct Node {
    pub(crate) id: String,
    pub(crate) options: NodeOptions,
    pub(crate) run: Option<NodeFunc>,
    pub(crate) view: crate::KeyView,
}

impl Node {
    /// The node's id; inside a sub-graph with its prefix (`review/draft`).
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What drawings show.
    #[must_use]
    pub fn title(&self) -> &str {
        self.options.title.as_deref().unwrap_or(&self.id)
    }

    /// The effect class.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        self.options.effect
    }

    /// The retry policy.
    #[must_use]
    pub const fn retry(&self) -> RetryPolicy {
        self.options.retry
    }

    /// The node's own time limit.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        self.options.timeout
    }

    /// The gate before the node.
    #[must_use]
    pub const fn gate(&self) -> Option<&Gate> {
        self.options.gate.as_ref()
    }

    /// Whether the node only routes: it has no function and counts as no step.
    #[must_use]
    pub const fn is_router(&self) -> bool {
        self.run.is_none()
    }

    /// Starts the node's function on the state as the node sees it. A router returns at once.
    pub fn call(
        &self,
        ctx: NodeContext,
        state: State,
    ) -> BoxFuture<'static, Result<Update, NodeError>> {
        match &self.run {
            Some(run) => run(ctx, state),
            None => Box::pin(std::future::ready(Ok(Update::new()))),
        }
    }

    /// The part of the run's state that the node sees, under the names it knows.
    #[must_use]
    pub fn view(&self, state: &State) -> State {
        self.view.inside(state)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.id)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Wraps a typed async function as a [`NodeFunc`]: `serde` at the edge, JSON inside.
pub(crate) fn node_func<S, R, F, Fut>(function: F) -> NodeFunc
where
    S: DeserializeOwned + Send + 'static,
    R: IntoUpdate,
    F: Fn(NodeContext, S) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, NodeError>> + Send + 'static,
{
    let function = Arc::new(function);
    Arc::new(move |ctx, state| {
        let function = Arc::clone(&function);
        Box::pin(async move {
            let input = serde_json::from_value::<S>(state.into_json()).map_err(|fault| {
                NodeError::permanent(format!("the state does not fit the node's type: {fault}"))
                    .with_code("E_TYPE")
            })?;
            function(ctx, input).await.map(IntoUpdate::into_update)
        })
    })
}
