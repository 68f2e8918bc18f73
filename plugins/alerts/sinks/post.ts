/** Sends JSON to an address of the operator's, by the rules for addresses that are not ours. */
import type { Host } from '../../../core/contract/contract.ts';
import { z } from '../../../core/contract/schema.ts';
import { Refused } from '../deliveries.ts';

const mostAnswerBytes = 4_096;

export const address = z.url({ protocol: /^https?$/ });
export const allowPrivate = z
  .boolean()
  .default(false)
  .describe(
    'The address may lie in a private network or on this machine. Turn it on for receivers of your own network.',
  );

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
  if (!answer.ok) throw new Refused(`it answered ${answer.status}`);
  return text;
}
