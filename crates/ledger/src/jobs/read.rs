//! Reads jobs and their run history.

use std::collections::BTreeMap;

use seatkeeper_core::RegistryTime;

use super::{JobDue, JobLock, JobName, JobRecord, JobRunRecord};
use crate::database::Row;
use crate::page::{Page, rows_for};
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger};

impl Ledger {
    /// Returns all jobs, ordered by name.
    pub async fn list_jobs(&self) -> Result<Vec<JobRecord>, Error> {
        let rows = self.readers().query(include_str!("../../sql/jobs.sql")).fetch_all().await?;
        rows.iter().map(JobRecord::read).collect()
    }

    /// Returns for each job the time from which the job can be [taken](Self::take_job). Jobs with a name
    /// unknown to the program are left out.
    pub async fn jobs_due(&self) -> Result<BTreeMap<JobName, JobDue>, Error> {
        let rows = self.readers().query(include_str!("../../sql/jobs_due.sql")).fetch_all().await?;
        let mut due = BTreeMap::new();
        for row in &rows {
            if let Ok(name) = Fields(row).value::<&str>("name")?.parse() {
                due.insert(name, JobDue::read(row)?);
            }
        }
        Ok(due)
    }

    /// Returns the time on the grid of a job's next run, or of the current run; `None` for a missing job. Only a run that
    /// succeeds moves the time.
    pub async fn next_run(&self, name: JobName) -> Result<Option<RegistryTime>, Error> {
        let row = self.readers().query(include_str!("../../sql/job_schedule.sql")).bind(name.as_str());
        row.fetch_optional().await?.map(|row| Fields(&row).time("next_run_at")).transpose()
    }

    /// Returns a page of a job's runs, newest first, before the run with number `cursor`.
    pub async fn job_runs(
        &self,
        name: JobName,
        cursor: Option<u64>,
        limit: u32,
    ) -> Result<Page<JobRunRecord, u64>, Error> {
        let rows = self
            .readers()
            .query(include_str!("../../sql/job_runs.sql"))
            .bind(name.as_str())
            .bind(stored_whole(cursor.unwrap_or(u64::MAX)))
            .bind(stored_whole(rows_for(limit)))
            .fetch_all()
            .await?;
        let runs = rows.iter().map(JobRunRecord::read).collect::<Result<_, _>>()?;
        Ok(Page::new(runs, limit, |run: &JobRunRecord| run.fencing_token))
    }
}

impl JobRecord {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        let lock = (fields.value("locked_by")?, fields.time_maybe("locked_at")?);
        Ok(Self {
            name: fields.named("name")?,
            interval: fields.span("interval_ms")?,
            next_run_at: fields.time("next_run_at")?,
            retry_at: fields.time_maybe("retry_at")?,
            last_run_at: fields.time_maybe("last_run_at")?,
            lock: match lock {
                (Some(worker), Some(at)) => Some(JobLock { worker, at }),
                _ => None,
            },
            fencing_token: fields.whole("fencing_token")?,
            failures: fields.whole("failures")?,
            last_error: fields.value("last_error")?,
        })
    }
}

impl JobRunRecord {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            fencing_token: fields.whole("fencing_token")?,
            worker: fields.value("worker")?,
            scheduled_at: fields.time("scheduled_at")?,
            started_at: fields.time("started_at")?,
            finished_at: fields.time_maybe("finished_at")?,
            outcome: fields.named("outcome")?,
            error: fields.value("error")?,
        })
    }
}
