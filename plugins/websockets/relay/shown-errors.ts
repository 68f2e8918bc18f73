/** Errors as clients of sessions see them: in close frames, and in messages of vendors without their secrets. Pure. */
import type { GatewayError } from '../../../core/contract/errors.ts';
import { findMember, scanObject } from '../../../core/json/splice.ts';
import { maxScrubbedBytes, scrubBytes } from '../../common/kit/scrub.ts';

const longestReasonBytes = 120;

/** The reason of a close frame. */
export function reasonOf({ message }: GatewayError): string {
  let reason = message;
  while (Buffer.byteLength(reason) > longestReasonBytes) reason = reason.slice(0, -1);
  return reason.toWellFormed();
}

/** Sent instead of an error that is too large to search. */
const hidden = Buffer.from('{"type":"server_error","message":"The model reported an error."}');

/** An error without keys, organisations and addresses; all else keeps its bytes. `path`: the member with the error; without it the whole message is searched. `key`: the one that the upstream was called with. */
export function withoutSecrets(data: Buffer, path: readonly string[], key: string): Buffer {
  const { start, end } = placeOf(data, path) ?? { start: 0, end: data.length };
  const error = data.subarray(start, end);
  const shown = error.length > maxScrubbedBytes ? hidden : scrubBytes(error, key);
  return shown === error ? data : Buffer.concat([data.subarray(0, start), shown, data.subarray(end)]);
}

function placeOf(data: Buffer, path: readonly string[]): { start: number; end: number } | undefined {
  let [start, end] = [0, data.length];
  try {
    for (const name of path) {
      const member = findMember(scanObject(data.subarray(start, end)), name);
      if (member === undefined) return undefined;
      [start, end] = [start + member.valueStart, start + member.end];
    }
  } catch {
    return undefined;
  }
  return { start, end };
}
