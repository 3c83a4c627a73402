//! Signed links: a capability to answer one question once, for whoever holds it.
//!
//! A link is a token that names the namespace, the run, the question, what the question was about,
//! the answers it may give, who answers with it and until when, under a keyed hash. Nothing of it
//! is stored before it is used: its id becomes the id of the answer's request, so that the store's
//! own rule (one request, one effect) makes it single-use. Reading a link acts on nothing.
//!
//! The token has the form `hp_at1.KEY.CLAIMS.MAC`, the last two in base 64 of the URL alphabet; the
//! hash is BLAKE3 with a key of 256 bits, compared in constant time. Keys are rotated by putting a
//! new one in front: the first signs, all of them verify.

use std::{fmt, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use holdpoint_graph::{Answer, Code, InterruptId, Namespace, Refusal, RequestId, RunId, printable};
use holdpoint_storage::Random;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Producer, ProducerError, SignalOptions, Signalled, Timestamp, signal::no_question};

const PREFIX: &str = "hp_at1";
/// The longest life of a link.
const LIFE_MAX: Duration = Duration::from_secs(90 * 24 * 3600);
/// How far a link may come from the future: the clocks of those who make and take it differ.
const SKEW_MS: i64 = 60_000;

/// The keys that sign and verify links: the first signs, all verify.
pub struct LinkKeys {
    keys: Vec<(String, [u8; 32])>,
}

impl fmt::Debug for LinkKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.keys.iter().map(|(id, _)| id.as_str()).collect();
        f.debug_struct("LinkKeys").field("ids", &ids).finish_non_exhaustive()
    }
}

impl LinkKeys {
    /// Reads a ring from its text: one `ID KEY` a line, the key in base 64, newest first; lines
    /// that begin with `#` are notes.
    ///
    /// # Errors
    /// `E_RANGE` with the line that is no key, and when there is none.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let bad = |line: usize, why: &str| {
            Refusal::new(Code::Range, "keys", format!("line {line} {why}"))
        };
        let mut keys = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (id, key) = line.split_once(' ').ok_or_else(|| bad(number, "is no `ID KEY`"))?;
            let is_id = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if id.len() > 64 || !id.chars().all(is_id) {
                return Err(bad(number, "has an id of other characters than A-Z a-z 0-9 - _"));
            }
            let key = URL_SAFE_NO_PAD.decode(key.trim()).ok().and_then(|key| key.try_into().ok());
            let key = key.ok_or_else(|| bad(number, "has a key of other than 32 bytes"))?;
            keys.push((id.to_owned(), key));
        }
        if keys.is_empty() {
            return Err(Refusal::new(Code::Range, "keys", "has no key"));
        }
        Ok(Self { keys })
    }

    /// A line with a new key, to be put in front of a ring.
    #[must_use]
    pub fn new_line(id: &str) -> String {
        format!("{id} {}", URL_SAFE_NO_PAD.encode(Random.bytes::<32>()))
    }

    fn sign(&self, claims: &Claims) -> String {
        let (id, key) = self.keys.first().expect("a ring has a key");
        let body = serde_json::to_vec(claims).expect("claims always have a text");
        let body = URL_SAFE_NO_PAD.encode(body);
        let mac = blake3::keyed_hash(key, format!("{PREFIX}.{id}.{body}").as_bytes());
        format!("{PREFIX}.{id}.{body}.{}", URL_SAFE_NO_PAD.encode(mac.as_bytes()))
    }

    fn verify(&self, token: &str) -> Option<Claims> {
        let (signed, mac) = token.trim().rsplit_once('.')?;
        let (head, body) = signed.rsplit_once('.')?;
        let id = head.strip_prefix(PREFIX)?.strip_prefix('.')?;
        let (_, key) = self.keys.iter().find(|(known, _)| known == id)?;
        let mac: [u8; 32] = URL_SAFE_NO_PAD.decode(mac).ok()?.try_into().ok()?;
        // The comparison of two hashes takes the same time wherever they differ.
        if blake3::keyed_hash(key, signed.as_bytes()) != blake3::Hash::from_bytes(mac) {
            return None;
        }
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).ok()?).ok()
    }
}

/// What a link says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    ns: Namespace,
    run: RunId,
    interrupt: InterruptId,
    args_hash: String,
    allowed: Vec<String>,
    by: String,
    groups: Vec<String>,
    made_ms: i64,
    until_ms: i64,
    id: RequestId,
}

/// For whom a link is made, and how long it holds.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    by: String,
    groups: Vec<String>,
    allowed: Vec<String>,
    life: Duration,
}

impl LinkOptions {
    /// A link that answers in the name of `by` for two days.
    pub fn new(by: impl Into<String>) -> Self {
        let life = Duration::from_secs(48 * 3600);
        Self { by: by.into(), groups: Vec::new(), allowed: Vec::new(), life }
    }

    /// A group that `by` speaks for; call it again for further ones.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// A choice that the link may make (`approve`, `reject`, …); without any it may make all.
    #[must_use]
    pub fn allow(mut self, choice: impl Into<String>) -> Self {
        self.allowed.push(choice.into());
        self
    }

    /// How long it holds; 90 days at most.
    #[must_use]
    pub const fn expires_in(mut self, life: Duration) -> Self {
        self.life = life;
        self
    }
}

/// A link that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The token: whoever has it can answer.
    pub token: String,
    /// The run.
    pub run: RunId,
    /// The question.
    pub interrupt: InterruptId,
    /// Until when it holds.
    pub expires_at: Timestamp,
    /// Its id, which stands in the record of the decision.
    pub id: RequestId,
}

/// What a link is for, as far as it can be told without using it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkView {
    /// The run.
    pub run: RunId,
    /// The question.
    pub interrupt: InterruptId,
    /// In whose name it answers.
    pub by: String,
    /// The choices it may make; empty for all.
    pub allowed: Vec<String>,
    /// Until when it holds.
    pub expires_at: Timestamp,
}

impl Producer {
    /// Makes a link to an open question of a run.
    ///
    /// # Errors
    /// `E_NOT_FOUND` when the question is not open; `E_RANGE` for its life; `E_NOT_ALLOWED` for a
    /// choice that the question does not have.
    pub async fn link(
        &self,
        keys: &LinkKeys,
        run: &RunId,
        interrupt: &InterruptId,
        options: &LinkOptions,
    ) -> Result<Link, ProducerError> {
        if options.life.is_zero() || options.life > LIFE_MAX {
            let why = format!("is {:?}, it must be up to {LIFE_MAX:?}", options.life);
            return Err(Refusal::new(Code::Range, "expires_in", why).into());
        }
        let open = self.open_questions(run).await?;
        let open = open.into_iter().find(|open| open.interrupt == *interrupt);
        let asked = open.and_then(|open| open.asked).ok_or_else(|| ProducerError::NotFound {
            what: "interrupt",
            id: interrupt.to_string(),
        })?;
        if let Some(odd) = options.allowed.iter().find(|choice| !asked.allowed.contains(choice)) {
            let why = format!("{:?} is no choice of the question", printable(odd, 40));
            return Err(Refusal::new(Code::NotAllowed, "allow", why).into());
        }
        let now_ms = self.now_ms().await?;
        let life_ms = i64::try_from(options.life.as_millis()).unwrap_or(i64::MAX);
        let claims = Claims {
            ns: self.namespace().clone(),
            run: run.clone(),
            interrupt: interrupt.clone(),
            args_hash: asked.args_hash,
            allowed: options.allowed.clone(),
            by: options.by.clone(),
            groups: options.groups.clone(),
            made_ms: now_ms,
            until_ms: now_ms.saturating_add(life_ms),
            id: Random.request_id(),
        };
        let (expires_at, id) = (Timestamp(claims.until_ms), claims.id.clone());
        let (run, interrupt) = (run.clone(), interrupt.clone());
        Ok(Link { token: keys.sign(&claims), run, interrupt, expires_at, id })
    }

    /// The one open question of a run.
    ///
    /// # Errors
    /// `E_NOT_FOUND`, `E_NO_QUESTION`, `E_AMBIGUOUS`.
    pub async fn only_question(&self, run: &RunId) -> Result<InterruptId, ProducerError> {
        let head = self.head(run).await?;
        let open = self.open_questions(run).await?;
        match open.as_slice() {
            [] => Err(no_question(&head)),
            [one] => Ok(one.interrupt.clone()),
            several => {
                let open = several.iter().map(|o| (o.interrupt.clone(), o.question())).collect();
                Err(ProducerError::Ambiguous { run: run.clone(), open })
            }
        }
    }

    /// Says what a link is for. Nothing happens to the question.
    ///
    /// # Errors
    /// `E_LINK_INVALID`, `E_LINK_FOREIGN`, `E_LINK_EXPIRED`.
    pub async fn read_link(&self, keys: &LinkKeys, token: &str) -> Result<LinkView, ProducerError> {
        let claims = self.claims(keys, token).await?;
        let Claims { run, interrupt, by, allowed, until_ms, .. } = claims;
        Ok(LinkView { run, interrupt, by, allowed, expires_at: Timestamp(until_ms) })
    }

    /// Answers the link's question with it, once.
    ///
    /// # Errors
    /// `E_LINK_INVALID` when it was altered or no key of the ring signed it; `E_LINK_FOREIGN` when
    /// it is of another namespace; `E_LINK_EXPIRED`; `E_LINK_USED`; `E_NOT_ALLOWED` for an answer
    /// that it may not give; else as [`Producer::signal`].
    pub async fn redeem(
        &self,
        keys: &LinkKeys,
        token: &str,
        answer: Value,
        comment: Option<String>,
    ) -> Result<Signalled, ProducerError> {
        let claims = self.claims(keys, token).await?;
        let given = Answer::new(answer.clone(), "", 0);
        let word = given.word().unwrap_or("anything else");
        if !claims.allowed.is_empty() && !claims.allowed.iter().any(|may| may == word) {
            let may = claims.allowed.join(", ");
            let why = format!("this link may answer {may}, not {}", printable(word, 40));
            return Err(Refusal::new(Code::NotAllowed, "answer", why).into());
        }
        let mut options = SignalOptions::run(claims.run.as_str())
            .interrupt(claims.interrupt.as_str())
            .args_hash(claims.args_hash)
            .answer(answer)
            .by(claims.by)
            .from(format!("link {}", claims.id));
        options = claims.groups.into_iter().fold(options, SignalOptions::group);
        if let Some(comment) = comment {
            options = options.comment(comment);
        }
        self.signal_once(&options, &claims.id).await
    }

    async fn claims(&self, keys: &LinkKeys, token: &str) -> Result<Claims, ProducerError> {
        let refused = |code, why: &str| Refusal::new(code, "token", why);
        let claims = keys.verify(token);
        let claims = claims
            .ok_or_else(|| refused(Code::LinkInvalid, "is no link that a known key signed"))?;
        if claims.ns != *self.namespace() {
            return Err(refused(Code::LinkForeign, "is a link of another namespace").into());
        }
        let now_ms = self.now_ms().await?;
        if claims.made_ms > now_ms.saturating_add(SKEW_MS) {
            return Err(refused(Code::LinkInvalid, "was made in the future").into());
        }
        if claims.until_ms <= now_ms {
            return Err(refused(Code::LinkExpired, "has expired").into());
        }
        Ok(claims)
    }
}
