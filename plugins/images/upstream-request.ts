/** What goes to the vendor: the client's bytes but for the model's name, headers by allow-list, time for making images. Pure. */
import { editBody } from '../../core/body-edits.ts';
import type { Headers, UpstreamRequest } from '../../core/contract.ts';
import type { RequestBody } from '../../core/request-body.ts';
import type { Target } from '../../core/vocabulary.ts';

/** `dropped`: members that the provider's configuration has taken out. */
export function wordUpstreamRequest(
  body: RequestBody,
  target: Target,
  timeoutMs: number,
): { sending: UpstreamRequest; dropped: readonly string[] } {
  const { upstream } = target;
  const { body: bytes, dropped } = editBody(body, target);
  return {
    dropped,
    sending: {
      url: `${target.baseUrl}/images/generations`,
      method: 'POST',
      headers: headersFor(target),
      body: bytes,
      credential: target.credential,
      stream: false,
      connectTimeoutMs: upstream.connectTimeoutMs,
      // A vendor is silent for as long as it paints; a shorter bound may be right for its texts.
      firstByteTimeoutMs: Math.max(upstream.firstByteTimeoutMs, timeoutMs),
      idleTimeoutMs: upstream.idleTimeoutMs,
    },
  };
}

function headersFor({ upstream, key }: Target): Headers {
  const headers: Headers = { 'content-type': 'application/json', accept: 'application/json' };
  for (const [name, value] of Object.entries(upstream.headers)) headers[name.toLowerCase()] = value;
  const { header, value } = upstream.auth ?? { header: 'authorization', value: 'Bearer {key}' };
  headers[header.toLowerCase()] = value.replace('{key}', () => key.reveal());
  return headers;
}
