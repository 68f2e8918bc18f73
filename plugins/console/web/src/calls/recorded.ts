/** A recorded request as a call that can be made again. Pure. */
import type { ApiCall, CallName } from './call.ts';

interface Recorded {
  readonly operation: string;
  readonly protocol: string | null;
  readonly model: string | null;
  readonly streamed: boolean;
}

type Place = readonly [name: CallName, path: string];
const places: Readonly<Record<string, Place>> = {
  chat: ['chat', '/v1/chat/completions'],
  completions: ['chat', '/v1/completions'],
  responses: ['responses', '/v1/responses'],
  compact: ['responses', '/v1/responses/compact'],
  messages: ['messages', '/v1/messages'],
  images: ['image', '/v1/images/generations'],
  videos: ['video', '/v1/videos'],
  speech: ['speech', '/v1/audio/speech'],
  embeddings: ['embedding', '/v1/embeddings'],
  rerank: ['rerank', '/v1/rerank'],
  moderations: ['moderation', '/v1/moderations'],
};

/** Where such a request goes; undefined: it is no request with a body of JSON that can be made again. */
export function placeOf({
  operation,
  protocol,
  model,
  streamed,
}: Recorded): Pick<ApiCall, 'name' | 'path'> | undefined {
  if (operation === 'generate-content') {
    const verb = streamed ? 'streamGenerateContent?alt=sse' : 'generateContent';
    return model === null ? undefined : { name: 'gemini', path: `/v1beta/models/${encodeURIComponent(model)}:${verb}` };
  }
  if (operation === 'count-tokens') {
    if (protocol === 'messages') return { name: 'messages', path: '/v1/messages/count_tokens' };
    return protocol === 'responses' ? { name: 'responses', path: '/v1/responses/input_tokens' } : undefined;
  }
  // Another protocol's request of the same operation has another address, which is not recorded.
  const isForeign = operation === 'embeddings' || operation === 'rerank' ? protocol === 'gemini' : false;
  const place = isForeign || !Object.hasOwn(places, operation) ? undefined : places[operation];
  return place && { name: place[0], path: place[1] };
}

/** As a person reads and changes it; a text that is no JSON as it is. */
export function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

/** The body of a call; undefined: it is no JSON object. */
export function bodyIn(text: string): ApiCall['body'] | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as ApiCall['body']) : undefined;
  } catch {
    return undefined;
  }
}
