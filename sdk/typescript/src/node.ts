/** The package on Node.js, with the parts for programs on Node.js alone. */

export * from "./index.node.js";
export { machineId } from "./machine-id.js";
export { tokenFile } from "./token-file.js";
