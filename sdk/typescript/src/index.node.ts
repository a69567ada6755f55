/** The package on Node.js. */

export * from "./names.js";
export { type AcquireOptions, Client, type ClientOptions } from "./node-client.js";
