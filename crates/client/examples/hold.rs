//! Holds a seat for a few seconds of work.
#![allow(clippy::print_stdout, reason = "the program talks to its user")]

use std::env;
use std::error::Error;
use std::time::Duration;

use seatkeeper_client::{Client, MachineId, Wait};

const KEY: &str = "TOUR-2030";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // A container has no id of its own: SEATS_MACHINE names the machine there.
    let machine = match env::var("SEATS_MACHINE") {
        Ok(name) => name,
        Err(_) => MachineId::of_this_machine("com.example.tour")?.into(),
    };
    let client = Client::builder(env::var("SEATS_URL")?).license_key(KEY).build()?;
    let request = client.license(KEY).machine(machine).wait(Wait::For(Duration::from_secs(300)));
    let seat = request.acquire().await?;
    println!("seat {} is held", seat.session_id().unwrap_or_default());
    for step in 1..=3 {
        seat.check()?;
        println!("step {step}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    seat.release().await?;
    println!("the seat is given back");
    Ok(())
}
