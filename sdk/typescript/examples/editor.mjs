// An editor for one line at a time, which saves the work of its user when its seat is lost.
//
//     node editor.mjs LETTER.txt
//
// Each line of the standard input is a line of the letter; the end of the input saves the letter.

import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { Client, LicenseKey, SeatkeeperError } from "@seatkeeper/client";
import { machineId } from "@seatkeeper/client/node";

const KEY = "TOUR-2030";
const path = process.argv[2] ?? "letter.txt";

/** Takes lines until the end of the input, or the loss of the seat; returns the exit code. */
async function edit(seat) {
  const lines = [];
  seat.onChange((state) => {
    if (state.kind === "offline") console.log("The license server does not answer. You can go on for now.");
    if (state.kind === "grace") console.log(`The license server is away. Save your work within ${seat.remaining} s.`);
  });
  // The reader ends with the seat, so that a user who types nothing hears of the loss, too.
  const reader = createInterface({ input: process.stdin, signal: seat.signal });
  for await (const line of reader) {
    seat.activity();
    lines.push(`${line}\n`);
  }
  if (seat.state.kind === "lost") return seatLost(lines, seat.state);
  writeFileSync(path, lines.join(""));
  console.log(`Saved ${path}.`);
  return 0;
}

/** The dialog of a program with windows: the work is safe before the user has read a word. */
function seatLost(lines, { reason, by }) {
  const rescued = path.replace(/(\.[^./]*)?$/, ".rescued");
  writeFileSync(rescued, lines.join(""));
  console.log(`Your seat is lost (${reason}${by === null ? "" : ` by ${by}`}). Your work is in ${rescued}.`);
  return 1;
}

const client = new Client(process.env.SEATS_URL, { token: new LicenseKey(KEY), application: { name: "editor" } });
try {
  const machine = process.env.SEATS_MACHINE ?? machineId("com.example.tour");
  const seat = await client.license(KEY).acquire({ machineId: machine });
  console.log(`Type your letter to ${path}.`);
  process.exitCode = await edit(seat);
} catch (error) {
  if (!(error instanceof SeatkeeperError)) throw error;
  console.error(`The editor cannot start: ${error.message}`);
  process.exitCode = 1;
} finally {
  await client.close();
  // An open standard input would keep the process alive.
  process.stdin.destroy();
}
