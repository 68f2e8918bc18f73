/** Features that an upstream of the client's own protocol lacks. Pure. */
import type { Target } from '../../common/domain/upstreams.ts';
import type { Opened } from '../../common/wire/protocols.ts';

/** true: the request goes through the canonical format although both sides use the same protocol. */
export function mustEmulate({ decodeWith, compaction }: Opened, { traits }: Target): boolean {
  return decodeWith !== undefined || (compaction !== undefined && traits.compaction === false);
}

/** true: the upstream has no endpoint that counts this request's tokens. */
export function mustEstimate({ call, decodeWith }: Opened, { traits }: Target): boolean {
  return !call.billable && (decodeWith !== undefined || traits.token_counting === false);
}
