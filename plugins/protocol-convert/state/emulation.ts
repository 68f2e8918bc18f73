/** What an upstream of the client's own protocol still cannot be asked for as it came. Pure. */
import type { Target } from '../../../core/vocabulary.ts';
import type { Opened } from '../protocol.ts';

/** true: the request goes through the common tongue although both sides speak the same. */
export function mustEmulate({ decodeWith, compaction }: Opened, { traits }: Target): boolean {
  return decodeWith !== undefined || (compaction !== undefined && traits.compaction === false);
}

/** true: the upstream has no address that counts this request's tokens. */
export function mustEstimate({ call, decodeWith }: Opened, { traits }: Target): boolean {
  return !call.billable && (decodeWith !== undefined || traits.token_counting === false);
}
