// Holds a seat for a few seconds of work.

import { Client, DeniedError, SeatLostError } from "@seatkeeper/client";

const client = new Client(process.env.SEATS_URL, { token: process.env.SEATS_TOKEN });
try {
  const seat = await client.license("TOUR").acquire({ machineId: "workstation-7", wait: 300 });
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
    console.error(`no seat (${error.code}); held by: ${holders}`);
  } else if (error instanceof SeatLostError) {
    console.error(`the seat is lost (${error.loss.reason}): stopped`);
  } else {
    throw error;
  }
} finally {
  await client.close();
}
