// Holds a seat for a few seconds of work.

import { Client, DeniedError, LicenseKey, SeatLostError } from "@seatkeeper/client";
import { machineId } from "@seatkeeper/client/node";

const key = "TOUR-2030";
const client = new Client(process.env.SEATS_URL, { token: new LicenseKey(key) });
try {
  // A container has no id of its own: SEATS_MACHINE names the machine there.
  const machine = process.env.SEATS_MACHINE ?? machineId("com.example.tour");
  const seat = await client.license(key).acquire({ machineId: machine, wait: 300 });
  console.log(`seat ${seat.sessionId} is held`);
  for (let step = 1; step <= 3; step += 1) {
    seat.check();
    console.log(`step ${step}`);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  await seat.release();
  console.log("the seat is given back");
} catch (error) {
  process.exitCode = 1;
  if (error instanceof DeniedError) {
    const holders = error.holders.map((holder) => holder.machineId).join(", ");
    console.error(`no seat: ${error.message}; held by: ${holders || "nobody"}`);
  } else if (error instanceof SeatLostError) {
    console.error(`the seat is lost (${error.loss.reason}): stopped`);
  } else {
    throw error;
  }
} finally {
  await client.close();
}
