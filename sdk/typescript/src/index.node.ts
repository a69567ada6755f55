/** The package on Node.js. */

export * from "./names.js";
export { type AcquireOptions, Client, type ClientOptions, type License } from "./node-client.js";
