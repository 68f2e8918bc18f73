/** Recorded answers that do not read the same elsewhere, each with the reason. */
import type { Family, Recording } from '../helpers/recordings.ts';

export interface Exceptions {
  /** The gateway makes an error of it. */
  readonly fails: RegExp | undefined;
  /** What cannot be the same. */
  readonly differs: readonly string[];
}

export function exceptionsOf(_recording: Recording, _client: Family, _isStream: boolean): Exceptions {
  return { fails: undefined, differs: [] };
}
