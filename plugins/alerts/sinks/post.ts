/** Sends JSON to an address of the operator's, by the rules for addresses that are not ours. */
import { z } from '../../../core/contract/schema.ts';
import { GuardedClient } from '../../common/kit/fetch/guarded-fetch.ts';
import { Refused } from '../deliveries.ts';

const mostAnswerBytes = 4_096;

export const address = z.url({ protocol: /^https?$/ });
export const allowPrivate = z
  .boolean()
  .default(false)
  .describe('The address may lie in a private network or on this machine.');

export interface Poster {
  /** Rejects for any answer but 2xx. Resolves with the beginning of the answer. */
  post(url: string, body: object, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<string>;
  close(): Promise<void>;
}

export function openPoster(isPrivateAllowed: boolean): Poster {
  const client = new GuardedClient({ allowPrivate: isPrivateAllowed, maxBytes: mostAnswerBytes });
  return {
    async post(url, body, headers, signal) {
      const sent = { 'content-type': 'application/json', ...headers };
      const { status, text } = await client.postForAnswer(url, JSON.stringify(body), sent, signal);
      if (status < 200 || status > 299) throw new Refused(`it answered ${status}`);
      return text;
    },
    close: () => client.close(),
  };
}
