/** The part of the package for programs on Node.js alone. */

export { machineId } from "./machine-id.js";
export { tokenFile } from "./token-file.js";
