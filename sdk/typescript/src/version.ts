/** The name and the version of this package, for the audit log. */
export const SDK = "typescript/0.1.0";
