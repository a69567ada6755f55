/** The instance id of one seat. */
export interface Slot {
  readonly instanceId: string;
  /** The reason for which the state directory was not used. */
  readonly warning: string | undefined;
  /** Leaves the id to the next process. A second call has no effect. */
  close(): void;
}
