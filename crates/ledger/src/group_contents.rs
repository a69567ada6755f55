//! The content that members of groups watch. A group whose plan demands the same content of all compares each member's
//! content with the host's.

use seatkeeper_core::{RegistryTime, SessionId, Span};

use crate::database::Row;
use crate::row::Fields;
use crate::{Error, Ledger, times};

/// The content that a member reports.
#[derive(Clone, Copy, Debug)]
pub struct ContentReport<'a> {
    /// The member's session.
    pub member: SessionId,
    /// The session of the group's host.
    pub host: SessionId,
    /// The content; `None` for a member that names none.
    pub content: Option<&'a str>,
    /// The time of the report.
    pub at: RegistryTime,
    /// The member's TTL. A difference counts from anew after a pause of more than this.
    pub ttl: Span,
}

/// The content of a member on record.
struct Kept {
    content: Option<String>,
    differs_since: Option<RegistryTime>,
    at: RegistryTime,
}

impl Kept {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        let content = fields.value::<Option<&str>>("content_id")?.map(Into::into);
        Ok(Self { content, differs_since: fields.time_maybe("differs_since")?, at: fields.time("at")? })
    }
}

impl Ledger {
    /// Returns the content that a member reported last; `None` without a report, or for a report of no content.
    pub async fn group_content(&self, member: SessionId) -> Result<Option<String>, Error> {
        let (kept, _) = self.contents_of(member, member).await?;
        Ok(kept.and_then(|kept| kept.content))
    }

    /// Keeps the content that a member reports, and returns the time for which the member's content has differed from the
    /// host's; `None` for equal contents and for the host. A report without content differs from every content. The call
    /// writes nothing if neither the member's content nor the equality has changed.
    pub async fn report_group_content(&self, report: ContentReport<'_>) -> Result<Option<Span>, Error> {
        let ContentReport { member, host, content, at, ttl } = report;
        let (mine, hosts) = self.contents_of(member, host).await?;
        let is_same = content.is_some() && hosts.is_some_and(|hosts| hosts.content.as_deref() == content);
        // Between two reports further apart, the contents may have been equal.
        let recent = mine.as_ref().filter(|mine| at <= mine.at + ttl);
        let since_before = recent.and_then(|mine| mine.differs_since);
        let differs_since = (member != host && !is_same).then(|| since_before.unwrap_or(at));
        let is_kept = mine.is_some_and(|mine| {
            mine.content.as_deref() == content && mine.differs_since.is_none() && differs_since.is_none()
        });
        if !is_kept {
            self.keep_group_content(report, differs_since).await?;
        }
        Ok(differs_since.map(|since| at.since(since)))
    }

    /// Returns the kept contents of a member and of the host.
    async fn contents_of(
        &self,
        member: SessionId,
        host: SessionId,
    ) -> Result<(Option<Kept>, Option<Kept>), Error> {
        let query = self.readers().query(include_str!("../sql/group_contents.sql"));
        let rows = query.bind(member.as_uuid()).bind(host.as_uuid()).fetch_all().await?;
        let (mut mine, mut hosts) = (None, None);
        for row in &rows {
            let kept = Kept::read(row)?;
            if Fields(row).session_id("session_id")? == member {
                mine = Some(kept);
            } else {
                hosts = Some(kept);
            }
        }
        Ok((mine, hosts))
    }

    async fn keep_group_content(
        &self,
        report: ContentReport<'_>,
        differs_since: Option<RegistryTime>,
    ) -> Result<(), Error> {
        let mut tx = self.write().await?;
        let keep = tx.query(include_str!("../sql/keep_group_content.sql"));
        let keep = keep.bind(report.member.as_uuid()).bind(report.content.map(str::to_owned));
        let keep = keep.bind(differs_since.map(times::stored)).bind(times::stored(report.at));
        keep.execute().await?;
        tx.commit().await
    }
}
