/** Which failures of a database pass by themselves: an outage, a server that is full, a statement that waited too long. */
import { markPassing, markUnstorable } from '../../core/contract/errors.ts';

/** What a network, or a server that starts, stops or is full, says; by Node's, the driver's and PostgreSQL's codes. */
export const reasons = new Map([
  ['ECONNREFUSED', 'the connection is refused'],
  ['ECONNRESET', 'the connection breaks'],
  ['EPIPE', 'the connection breaks'],
  ['ENOENT', 'its socket does not exist'],
  ['ENOTFOUND', 'its host name is not known'],
  ['EAI_AGAIN', 'its host name cannot be looked up'],
  ['EHOSTUNREACH', 'its host cannot be reached'],
  ['ENETUNREACH', 'its network cannot be reached'],
  ['ETIMEDOUT', 'the connection gets no answer'],
  ['CONNECT_TIMEOUT', 'the connection gets no answer'],
  ['CONNECTION_LOST', 'the connection gets no answer in time'],
  ['CONNECTION_CLOSED', 'the connection is closed'],
  ['CONNECTION_ENDED', 'the connection is closed'],
  ['CONNECTION_DESTROYED', 'the connection is closed'],
  ['53300', 'it has no connection left'],
  ['57P01', 'it is shutting down'],
  ['57P02', 'it is shutting down'],
  ['57P03', 'it is starting'],
]);

/**
 * Connection exceptions, insufficient resources, an operator's hand or a time limit, serialization failures and deadlocks; a
 * lock that was not free, an idle transaction that was ended, a server that takes no writes.
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const passingStates = /^(08|53|57|40)...$|^(55P03|25P03|25006)$/;

/** A text with U+0000, as it is and escaped in JSON. */
const unstorableStates = new Set<unknown>(['22021', '22P05']);

/** The driver's error, marked where it passes, or where a text of the request is its cause. */
export function marked(error: unknown): unknown {
  const { code } = error as { code?: unknown };
  if (unstorableStates.has(code) && error instanceof Error) return markUnstorable(error);
  const passes = typeof code === 'string' && (reasons.has(code) || passingStates.test(code));
  return passes && error instanceof Error ? markPassing(error) : error;
}

/** Whether the database does not answer, unlike failures of one statement, such as a deadlock. */
export function isAway(error: unknown): boolean {
  const { code } = Object(error) as { code?: unknown };
  return typeof code === 'string' && (reasons.has(code) || code === 'UNAVAILABLE' || code.startsWith('08'));
}

/** The pool's own error: the statement was not run, or it is unknown whether it was. */
export function unavailable(message: string, code = 'UNAVAILABLE'): Error {
  return markPassing(Object.assign(new Error(message), { code }));
}
