//! Holds a seat of a license while a program works.

use std::time::Duration;

use seatkeeper_client::{Client, Error, State, Wait};

/// Holds a seat while `work` runs, and tells why the work must stop.
pub(crate) async fn work_with_a_seat(url: &str, token: &str, license_key: &str) -> Result<(), Error> {
    let client = Client::builder(url).token(token).build()?;
    let seat = client
        .license(license_key)
        .machine("workstation-7")
        .wait(Wait::For(Duration::from_secs(300)))
        .acquire()
        .await?;

    let mut states = seat.watch();
    tokio::spawn(async move {
        if let Ok(State::Lost(loss)) = states.wait_for(|state| matches!(state, State::Lost(_))).await {
            eprintln!("the seat is lost ({}): save your work", loss.reason.name());
        }
    });

    for step in 1..=3 {
        if let Err(stop) = seat.check() {
            eprintln!("stopped before step {step}: {stop}");
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    seat.release().await?;
    Ok(())
}
