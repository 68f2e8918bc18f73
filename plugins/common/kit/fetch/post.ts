/** Sends JSON to an address that is not the gateway's own, by the rules for such addresses, and says what went wrong without quoting it. */
import type { Host } from '../../../../core/contract/contract.ts';
import { Unfetchable } from '../../../../core/tools/guarded-fetch.ts';

const mostAnswerBytes = 4_096;

/** A fault that people see; names no address and no secret. */
export class Refused extends Error {
  /** The answer's status, where it was one. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}

interface Message {
  readonly url: string;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly allowPrivate: boolean;
}

/** Rejects for any answer but 2xx. Resolves with the answer, of 4 kB at most. */
export async function post(fetch: Host['fetch'], { url, body, headers, ...options }: Message): Promise<string> {
  const sent = { 'content-type': 'application/json', ...headers };
  const all = {
    ...options,
    method: 'POST',
    headers: sent,
    body: JSON.stringify(body),
    maxBytes: mostAnswerBytes,
  } as const;
  const answer = await fetch(url, all);
  const text = await answer.text();
  if (!answer.ok) throw new Refused(`it answered ${answer.status}`, answer.status);
  return text;
}

/** Errors of networks and libraries may quote addresses and passwords: only texts that cannot are shown. */
export function faultOf(error: unknown): string {
  if (error instanceof Refused || error instanceof Unfetchable) return error.message.slice(0, 200);
  const { name, code } = Object(error) as { name?: unknown; code?: unknown };
  if (name === 'TimeoutError' || name === 'AbortError') return 'it did not answer in time';
  return typeof code === 'string' && /^[A-Z_]{2,40}$/.test(code) ? `the connection failed (${code})` : 'it failed';
}
