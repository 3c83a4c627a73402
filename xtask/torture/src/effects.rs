//! The outside world: a service that counts how often each effect was asked for, and the client
//! of the nodes that ask.
//!
//! The protocol is as much HTTP as the two need. The service misbehaves by chance: it may hang,
//! answer late, close early, or answer 500 after it did the work.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, anyhow, bail};
use holdpoint_graph::NodeContext;
use holdpoint_torture_check::{Line, Op, Phase, Recorder};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use crate::chance::Chance;

/// The variable with the address of the service.
pub(crate) const ENV_EFFECTS: &str = "HOLDPOINT_TORTURE_EFFECTS";
/// The variable with the secret that the service wants to see, and nobody else may.
pub(crate) const ENV_TOKEN: &str = "HOLDPOINT_TORTURE_TOKEN";
/// How long a node waits for the service.
const PATIENCE: Duration = Duration::from_millis(400);
/// The most bytes of a request or reply.
const BYTES_MAX: usize = 4_096;

/// The secret of a torture: only workers have it, and it must never be stored or logged.
pub(crate) fn token(seed: u64) -> String {
    format!("token-{:016x}", Chance::new(seed, "token").next())
}

/// Asks the service for the effect of this task.
///
/// # Errors
/// When the service does not say that it did it; it may have done it all the same.
pub(crate) async fn call(class: &str, ctx: &NodeContext) -> Result<()> {
    let address = std::env::var(ENV_EFFECTS).context("there is no effect service")?;
    let (run, node, visit) = (ctx.run(), ctx.node(), ctx.visit());
    let key = ctx.idempotency_key();
    let path = format!("/{class}/{run}/{node}/{visit}/{key}");
    let reply = timeout(PATIENCE, exchange(&address, &path)).await;
    let reply = reply.map_err(|_| anyhow!("no answer within {PATIENCE:?}"))??;
    if !reply.starts_with("HTTP/1.1 200") {
        bail!("the service said {:?}", reply.lines().next().unwrap_or_default());
    }
    Ok(())
}

async fn exchange(address: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let token = std::env::var(ENV_TOKEN).unwrap_or_default();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut reply = Vec::new();
    stream.take(BYTES_MAX as u64).read_to_end(&mut reply).await?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

/// Serves until the runtime ends; answers with the address.
pub(crate) async fn serve(recorder: Recorder, seed: u64) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let recorder = Arc::new(recorder);
    tokio::spawn(async move {
        let mut chance = Chance::new(seed, "effects");
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let (recorder, mood) = (Arc::clone(&recorder), Mood::of(chance.below(100)));
            tokio::spawn(async move {
                // A caller that was killed closes its end; the call counts all the same.
                let _gone = answer(stream, &recorder, mood).await;
            });
        }
    });
    Ok(address)
}

/// How the service takes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// It does it and says so.
    Good,
    /// It does it and says so late.
    Late,
    /// It does it and never answers.
    Hang,
    /// It does it and closes the connection.
    Close,
    /// It does it and says that something went wrong.
    Angry,
    /// It closes the connection and does nothing.
    Absent,
}

impl Mood {
    fn of(percent: u64) -> Self {
        match percent {
            0..3 => Self::Hang,
            3..6 => Self::Close,
            6..9 => Self::Angry,
            9..12 => Self::Absent,
            12..20 => Self::Late,
            _ => Self::Good,
        }
    }
}

async fn answer(mut stream: TcpStream, recorder: &Recorder, mood: Mood) -> Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut piece = [0; 512];
        let count = stream.read(&mut piece).await?;
        if count == 0 || request.len() > BYTES_MAX {
            bail!("no request");
        }
        request.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
    if mood == Mood::Absent {
        return Ok(());
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let path = request.split(' ').nth(1).context("no path")?;
    let mut parts = path.trim_start_matches('/').split('/');
    let mut next = || parts.next().map(str::to_owned).context("the path is too short");
    let (class, run, node, visit, key) = (next()?, next()?, next()?, next()?, next()?);
    let line = |phase| {
        Line::now(Op::Effect, phase, format!("{run}/{node}/{visit}"))
            .run(run.as_str())
            .node(node.as_str(), visit.parse().unwrap_or(0))
            .detail(json!({ "class": class, "key": key, "mood": format!("{mood:?}") }))
    };
    recorder.write(line(Phase::Invoke))?;
    recorder.write(line(Phase::Ok))?;
    let reply = match mood {
        Mood::Hang => {
            sleep(PATIENCE * 3).await;
            return Ok(());
        }
        Mood::Close | Mood::Absent => return Ok(()),
        Mood::Angry => "500 Internal Server Error",
        Mood::Late => {
            sleep(PATIENCE / 4).await;
            "200 OK"
        }
        Mood::Good => "200 OK",
    };
    let reply = format!("HTTP/1.1 {reply}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    Ok(stream.write_all(reply.as_bytes()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_calls_go_well_and_each_mood_comes_up() {
        let moods: Vec<Mood> = (0..100).map(Mood::of).collect();
        for mood in [Mood::Late, Mood::Hang, Mood::Close, Mood::Angry, Mood::Absent] {
            assert!(moods.contains(&mood), "{mood:?}");
        }
        assert_eq!(moods.iter().filter(|mood| **mood == Mood::Good).count(), 80);
    }
}
