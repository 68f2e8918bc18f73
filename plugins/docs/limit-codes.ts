/** The codes of errors of limits, of plans, keys, accounts and vendors: they pass by themselves, or when something has ended. */
import type { ErrorKind } from '../../core/contract/errors.ts';
import { table } from '../../core/contract/table.ts';

export interface ErrorCode {
  readonly kinds: readonly ErrorKind[];
  readonly meaning: string;
  readonly cure: string;
}

export const of = (kinds: ErrorKind | readonly ErrorKind[], meaning: string, cure: string): ErrorCode => ({
  kinds: [kinds].flat() as readonly ErrorKind[],
  meaning,
  cure,
});

export const waits = 'Repeat after `retry-after`.';

export const limitCodes: Readonly<Record<string, ErrorCode>> = table({
  auth_tokens: of(
    'rate_limited',
    'The account has too many short-lived tokens.',
    'Use them, or wait until they expire.',
  ),
  batches: of(
    'rate_limited',
    'The account has as many open batches as it may.',
    'Wait until one has ended, or cancel one.',
  ),
  client_secrets: of(
    'rate_limited',
    'The account has too many short-lived keys.',
    'Use them, or wait until they expire.',
  ),
  compressed_requests: of('rate_limited', 'Too many compressed bodies wait to be unpacked.', waits),
  concurrency: of(
    'rate_limited',
    'More calls at once than the plan or key allows.',
    'Wait until one of them has ended.',
  ),
  control_frames: of('rate_limited', 'A WebSocket sent too many pings.', 'Ping less often.'),
  failed_attempts: of(
    'rate_limited',
    'Too many wrong keys came from this address.',
    'Correct the key, then wait for `retry-after`.',
  ),
  forms: of('rate_limited', 'Too many forms with sound are under way.', waits),
  message_bytes: of('rate_limited', 'Messages of WebSockets take too much memory.', waits),
  request_bytes: of('rate_limited', 'Bodies of requests take too much memory.', waits),
  rpd: of('rate_limited', 'More requests in a day than the plan or key allows.', waits),
  rpm: of('rate_limited', 'More requests in a minute than the plan or key allows.', waits),
  run_concurrency: of('rate_limited', 'The account has too many runs with tools at once.', waits),
  too_many_queued_turns: of(
    'rate_limited',
    'Too many turns wait on the connection.',
    'Wait for an answer before the next turn.',
  ),
  tool_concurrency: of(
    'rate_limited',
    'The account has too many requests to tools running at once.',
    'Wait for one to end, and repeat after `retry-after`.',
  ),
  tpm: of('rate_limited', 'More tokens in a minute than the plan or key allows.', waits),
  uploads: of('rate_limited', 'Too many uploads are under way.', waits),
  upstream: of('rate_limited', 'The vendor takes no more requests for now.', waits),
  websockets: of('rate_limited', 'Too many WebSockets are open.', 'Close some, or wait.'),
});
