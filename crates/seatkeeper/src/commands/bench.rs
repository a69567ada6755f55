//! `seatkeeper bench`: loads a server through its licenses API, and checks the server's promises meanwhile.

use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use seatkeeper_load::{Bounds, Operation, OperationReport, Plan, Progress, Report, Scenario, Target};
use serde_json::json;

use super::{EXIT_FAILED, Error};
use crate::admin::{self, LICENSES, License};
use crate::api_client::ApiClient;
use crate::args::ServerArgs;
use crate::output;
use crate::signals::EndSignals;

/// Time beyond the run itself, for the preparation and for answers still in progress at the end.
const TOKEN_TTL_MARGIN: Duration = Duration::from_secs(300);

/// The scopes of the token: `admin` creates and revokes licenses, `service` has no rate limit.
const TOKEN_SCOPES: &str = "admin service";

/// The status of a request above the rate limit.
const TOO_OFTEN: &str = "429";

/// The number of heartbeats between acquire and release.
const CYCLE_HEARTBEATS: u32 = 1;

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// The work of each connection
    #[arg(long, value_enum, default_value_t = Kind::Cycle)]
    scenario: Kind,
    /// The number of connections, each with one request in flight at a time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    concurrency: u32,
    /// The time of measurement, in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Stop after this many requests, if that comes first
    #[arg(long)]
    requests: Option<u64>,
    /// The number of licenses made for the run; the connections take them in turn
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    licenses: u32,
    /// The seats of each license [default: one for each connection]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    seats: Option<u32>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Hold seats, and renew them in turn
    Heartbeat,
    /// Ask for seats of a license that is full
    Denied,
    /// Take a seat, renew it, give it back, and start over
    Cycle,
}

impl BenchArgs {
    fn seats(&self) -> u32 {
        self.seats.unwrap_or(self.concurrency)
    }

    fn scenario(&self) -> Scenario {
        match self.scenario {
            Kind::Heartbeat => {
                let connections = self.concurrency.div_ceil(self.licenses);
                let each = (self.seats() / connections).max(1);
                Scenario::Heartbeats { sessions_per_connection: each as usize }
            }
            Kind::Denied => Scenario::Denied,
            Kind::Cycle => Scenario::Cycle { heartbeats: CYCLE_HEARTBEATS },
        }
    }

    /// Returns the bound on requests in turns of the load: a cycle is one turn.
    fn turns(&self) -> Option<u64> {
        let requests_per_turn = match self.scenario {
            Kind::Heartbeat | Kind::Denied => 1,
            Kind::Cycle => 2 + u64::from(CYCLE_HEARTBEATS),
        };
        self.requests.map(|requests| requests.div_ceil(requests_per_turn))
    }

    fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

pub(crate) async fn run(args: &BenchArgs) -> Result<ExitCode, Error> {
    let token = admin::token(&args.server, TOKEN_SCOPES, args.duration() + TOKEN_TTL_MARGIN)?;
    let ca_file = args.server.ca_file.as_deref();
    let api = ApiClient::new(&args.server.server, token.clone(), ca_file).map_err(admin::Error::Client)?;
    let target = target(&args.server, &token)?;
    let mut signals = EndSignals::listen().map_err(Error::Signals)?;
    let mut licenses = Vec::new();
    let report = match make_licenses(args, &api, &mut licenses, &mut signals).await {
        Ok(()) => load(args, target, &licenses, &mut signals).await,
        Err(error) => Err(error),
    };
    // The licenses are revoked even after a failed or stopped run. A signal during the revocation leaves the rest.
    let revoked = tokio::select! {
        revoked = revoke(&api, &licenses) => revoked,
        signal = signals.next() => return Err(Error::Interrupted { signal }),
    };
    let report = match report {
        // A stopped run has no report. An error of the revocation comes first: licenses are left.
        Err(stopped @ Error::Interrupted { .. }) => return revoked.and(Err(stopped)),
        report => report?,
    };
    let exit_code = print(&report, args.server.json)?;
    revoked?;
    Ok(exit_code)
}

/// Creates the licenses of the run. After an error, `licenses` has the licenses created so far. A signal stops after the
/// creation under way, whose license could not be revoked without the server's answer. A second signal does not wait.
async fn make_licenses(
    args: &BenchArgs,
    api: &ApiClient,
    licenses: &mut Vec<License>,
    signals: &mut EndSignals,
) -> Result<(), Error> {
    for _ in 0..args.licenses {
        let mut creation = pin!(api.create(LICENSES, json!({ "max_seats": args.seats() })));
        let mut stopped = None;
        let answer = loop {
            tokio::select! {
                answer = &mut creation => break answer?,
                signal = signals.next() => match stopped {
                    None => stopped = Some(signal),
                    Some(_) => return Err(Error::Interrupted { signal }),
                },
            }
        };
        licenses.push(api.read(LICENSES, answer)?);
        if let Some(signal) = stopped {
            return Err(Error::Interrupted { signal });
        }
    }
    Ok(())
}

/// Revokes the licenses, and thereby ends their sessions. Returns the first error.
async fn revoke(api: &ApiClient, licenses: &[License]) -> Result<(), Error> {
    let mut revoked = Ok(());
    for license in licenses {
        let path = format!("{LICENSES}/{}", license.license_id);
        revoked = revoked.and(api.delete(&path, &[]).await.map(drop));
    }
    Ok(revoked?)
}

/// Loads the server until the end of the plan, or until a signal.
async fn load(
    args: &BenchArgs,
    target: Target,
    licenses: &[License],
    signals: &mut EndSignals,
) -> Result<Report, Error> {
    let plan = Plan {
        target,
        license_keys: licenses.iter().map(|license| license.license_key.clone()).collect(),
        concurrency: args.concurrency as usize,
        bounds: Bounds { duration: args.duration(), turns: args.turns() },
        scenario: args.scenario(),
    };
    let bar = progress_bar(args);
    let loading = seatkeeper_load::run(plan, |progress| show(&bar, args, progress));
    let report = tokio::select! {
        report = loading => report.map_err(Error::from),
        signal = signals.next() => Err(Error::Interrupted { signal }),
    };
    bar.finish_and_clear();
    report
}

/// Returns the server to load. The scheme of the address decides on TLS, as in every command: an `http` server needs no CA
/// certificates.
fn target(server: &ServerArgs, token: &str) -> Result<Target, Error> {
    if !server.server.starts_with("https://") {
        return Ok(Target::new(&server.server, Some(token))?);
    }
    let ca = server.ca_file.as_ref().map(std::fs::read).transpose().map_err(Error::CaFile)?;
    Ok(Target::secured(&server.server, Some(token), ca.as_deref())?)
}

/// Returns the progress bar, which goes to stderr and only if that is a terminal.
fn progress_bar(args: &BenchArgs) -> ProgressBar {
    let bar = ProgressBar::new(args.requests.unwrap_or(args.duration().as_millis() as u64));
    let style = ProgressStyle::with_template("{wide_bar} {msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn show(bar: &ProgressBar, args: &BenchArgs, progress: Progress) {
    bar.set_position(match args.requests {
        Some(_) => progress.requests,
        None => progress.elapsed.as_millis() as u64,
    });
    let Progress { requests, errors, violations, .. } = progress;
    bar.set_message(format!("{requests} requests, {errors} errors, {violations} violations"));
}

fn print(report: &Report, as_json: bool) -> Result<ExitCode, Error> {
    if as_json {
        output::json(&json!(report))?;
    } else {
        print_text(report)?;
    }
    let good = report.violations.count == 0 && report.errors_total() == 0;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

fn print_text(report: &Report) -> Result<(), Error> {
    let Report { scenario, concurrency, elapsed_seconds, requests_per_second, .. } = report;
    output::line(format_args!(
        "{scenario}: {requests_per_second:.0} requests a second over {concurrency} connections, in {elapsed_seconds:.1} s"
    ))?;
    let header = ["REQUEST", "COUNT", "P50 MS", "P99 MS", "P99.9 MS", "MAX MS"];
    output::table(header, report.operations.iter().map(|(&operation, figures)| row(operation, figures)))?;
    for (what, count) in &report.errors {
        output::line(format_args!("{count} requests were not answered as they may be: {what}"))?;
    }
    if report.errors.contains_key(TOO_OFTEN) {
        output::line("429: the server limits how often one may ask; its settings in [limits] say how often")?;
    }
    output::line(verdict(report))?;
    Ok(())
}

fn row(operation: Operation, figures: &OperationReport) -> [String; 6] {
    let millis = |value: f64| format!("{value:.2}");
    [
        operation.as_str().to_owned(),
        figures.requests.to_string(),
        millis(figures.p50_ms),
        millis(figures.p99_ms),
        millis(figures.p999_ms),
        millis(figures.max_ms),
    ]
}

fn verdict(report: &Report) -> String {
    let violations = &report.violations;
    if violations.count == 0 {
        return "checked: no license was ever seen above its seats, and no promise was seen broken"
            .to_owned();
    }
    let first = violations.first.join("\n  ");
    format!("BROKEN: {} promises were seen broken. The first:\n  {first}", violations.count)
}
