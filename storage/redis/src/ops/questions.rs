//! Pages of open questions.

use holdpoint_graph::InterruptId;
use holdpoint_storage::{
    Cursor, FoundQuestion, ListedQuestion, OpenQuestion, Page, QuestionFilter, QuestionPage,
    QuestionSearch, StoreResult,
};

use crate::{
    RedisStore,
    codec::{self, Parts},
    script::Script,
};

impl RedisStore {
    pub(super) async fn page_of_questions(
        &self,
        filter: &QuestionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<OpenQuestion>> {
        let mut page = QuestionPage::new(filter, after, limit)?;
        if let Some(run) = &filter.run {
            let Some(mut parts) = self.read(run, "questions", None).await? else {
                return Ok(page.of(Vec::new()));
            };
            let head = codec::head(run.as_str(), &mut parts)?;
            let mut open = Vec::new();
            for (id, value) in parts.pairs()? {
                let interrupt = codec::id(id.as_bytes(), "a question")?;
                open.push(codec::question(head.clone(), interrupt, &value)?);
            }
            return Ok(page.of(open));
        }
        while let Some(search) = page.search() {
            let found = self.found(&search).await?;
            page.take(&search, found);
        }
        Ok(page.done())
    }

    async fn found(&self, search: &QuestionSearch) -> StoreResult<Vec<FoundQuestion>> {
        let mut call = self.conn.call(Script::Questions).await?;
        call.arg(search.kinds.join(" "));
        match &search.after {
            Some((at_ms, id)) => call.number(*at_ms).arg(id),
            None => call.arg("").arg(""),
        };
        call.number(search.max);
        for group in &search.groups {
            call.arg(group.join(" "));
        }
        let mut parts = Parts::of(self.conn.ask(call).await?, "a page of questions")?;
        let mut found = Vec::with_capacity(parts.left());
        while parts.left() > 0 {
            found.push(row(parts.parts()?)?);
        }
        Ok(found)
    }
}

/// A row of a list. One that stands in no list of some condition is left out of pages, and so is
/// one whose run or question cannot be read; the doctor shows that.
fn row(mut parts: Parts) -> StoreResult<FoundQuestion> {
    let at_ms = parts.number()?;
    let id = parts.text()?;
    let question = match parts.left() {
        0 => None,
        _ => listed(&id, &mut parts)?,
    };
    Ok(FoundQuestion { at_ms, id, question })
}

fn listed(item: &str, parts: &mut Parts) -> StoreResult<Option<ListedQuestion>> {
    let fields = parts.next()?;
    let Some((id, run)) = item.split_once(' ') else { return Ok(None) };
    let Some(head) = codec::row_head(run, fields, parts)? else { return Ok(None) };
    let interrupt: InterruptId = codec::id(id.as_bytes(), "a question")?;
    Ok(codec::question(head, interrupt, &parts.bytes()?).ok())
}
