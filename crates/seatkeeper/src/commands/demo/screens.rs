//! The devices API, as used by the demo's subscriber.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use super::error::{DemoError, StoryResult};
use crate::admin::SUBSCRIPTIONS;
use crate::api_client::{ApiClient, Events};
use crate::output::line;

/// Timeout for the event of a lost screen: many times the usual delay.
const HEARING_TIMEOUT: Duration = Duration::from_secs(20);

const SESSIONS: &str = "/api/v1/devices/sessions";

/// A device's screen.
#[derive(Debug, Deserialize)]
struct Screen {
    session_id: String,
    outcome: String,
    device_limit: u32,
    devices_in_use: u32,
}

/// The event at the end of a device's session.
#[derive(Debug, Deserialize)]
struct Ended {
    by: By,
}

/// The device that took the screen.
#[derive(Debug, Deserialize)]
struct By {
    device_name: String,
}

/// Admits three devices of a subscriber with two screens: the first device is evicted, and receives the
/// event.
pub(super) async fn tell(api: &ApiClient, subscriber: &str) -> StoryResult<()> {
    api.create(SUBSCRIPTIONS, json!({ "user": subscriber, "plan": "standard" })).await?;
    let tv = take(api, "tv").await?;
    let mut events = api.listen(&format!("{SESSIONS}/{}/events", tv.session_id)).await?;
    take(api, "mobile").await?;
    let asked = Instant::now();
    take(api, "tablet").await?;
    hear(&mut events, asked).await?;
    api.delete(SESSIONS, &[]).await?;
    Ok(())
}

async fn take(api: &ApiClient, device: &str) -> StoryResult<Screen> {
    let ask = json!({ "device_id": device, "device_type": device, "device_name": format!("the {device}") });
    let screen: Screen = api.read(SESSIONS, api.post(SESSIONS, ask).await?)?;
    let Screen { outcome, devices_in_use, device_limit, .. } = &screen;
    line(format_args!("   {device:<6} {outcome}: {devices_in_use} of {device_limit} screens in use"))?;
    Ok(screen)
}

async fn hear(events: &mut Events, asked: Instant) -> StoryResult<()> {
    let unheard = || DemoError::Unexpected("a device did not hear that it was evicted".to_owned());
    let event = timeout(HEARING_TIMEOUT, events.next()).await.map_err(|_| unheard())??.ok_or_else(unheard)?;
    let ended: Ended = events.read(&event)?;
    let (name, by, seconds) = (event.name, ended.by.device_name, asked.elapsed().as_secs_f64());
    Ok(line(format_args!("   tv     hears after {seconds:.2} s that it was {name} by {by}, and stops"))?)
}
