/** The key of a license that issues license tokens (`--clients key`): a program with the key needs no other token. */
export class LicenseKey {
  // Private fields keep the key out of a log that shows the object.
  readonly #key: string;
  /** The tenant that owns the license; `undefined` is the tenant `default`. */
  readonly tenant: string | undefined;

  constructor(key: string, options: { readonly tenant?: string } = {}) {
    this.#key = key;
    this.tenant = options.tenant;
  }

  /** Returns the body of a request for a token of this machine. */
  static body(license: LicenseKey, machineId: string): Readonly<Record<string, unknown>> {
    const body: Record<string, unknown> = { license_key: license.#key, machine_id: machineId };
    if (license.tenant !== undefined) body["tenant"] = license.tenant;
    return body;
  }
}
