/** Questions that are nearly the same: what of a request is compared, and by which vectors. */
import type { Exchange, Host } from '../../core/contract/contract.ts';
import { isObject, type JsonObject, listOf, objectOf, tryParse } from '../../core/json/json.ts';
import { caller } from '../common/domain/accounts.ts';
import type { PromptTexts } from '../common/wire/prompt-rules.ts';
import type { Hole } from './key.ts';
import type { Near } from './stores/store.ts';

interface Question {
  readonly text: string;
  /** Its place in the request, all of the rest of which must be equal. */
  readonly hole: Hole;
}

/** The last text of the user; undefined: there is none, or there is more in the request than texts. */
export function questionIn(
  json: JsonObject,
  { texts, unread }: Pick<PromptTexts, 'texts' | 'unread'>,
): Question | undefined {
  const last = texts.findLast(({ turn }) => turn > 0);
  if (last?.role !== 'user' || last.kind !== 'text' || last.text.trim() === '' || unread.length > 0) return undefined;
  const hole = holeAt(json, last.field, last.text);
  return hole && { text: last.text, hole };
}

/** `field` as `messages[0].content[1].text`. */
function holeAt(json: JsonObject, field: string, text: string): Hole | undefined {
  const steps = field.match(/[^.[\]]+/g) ?? [];
  const member = steps.pop();
  let holder: unknown = json;
  for (const step of steps) holder = Array.isArray(holder) ? holder[Number(step)] : objectOf(holder)?.[step];
  return member !== undefined && isObject(holder) && holder[member] === text ? { holder, member } : undefined;
}

/** Asks the gateway itself for the vector of a text, as the client's own call with its limits and its charge. */
export async function vectorOf(host: Host, exchange: Exchange, model: string, text: string): Promise<Float32Array> {
  const answer = await host.perform({
    method: 'POST',
    path: '/v1/embeddings',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ model, input: text, encoding_format: 'float' })),
    remoteAddress: exchange.request.remoteAddress,
    signal: exchange.signal,
    prepare(own) {
      const by = exchange.find(caller);
      if (by !== undefined) own.set(caller, by);
    },
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of answer.body) chunks.push(chunk);
  const [first] = listOf(objectOf(tryParse(Buffer.concat(chunks).toString()))?.['data']);
  const vector = Float32Array.from(listOf(objectOf(first)?.['embedding']), Number);
  if (answer.status !== 200 || vector.length === 0 || !vector.every(Number.isFinite))
    throw new Error(`the embedding was answered with ${answer.status}`);
  return vector;
}

/** The key of the nearest one, if it is near enough. */
export function nearest(those: readonly Near[], vector: Float32Array, least: number): string | undefined {
  let [best, key] = [least, undefined as string | undefined];
  for (const one of those) {
    const found = cosine(one.vector, vector);
    if (found < best) continue;
    best = found;
    key = one.key;
  }
  return key;
}

/** The cosine of the angle between two vectors; those of different lengths have nothing in common. */
function cosine(left: Float32Array, right: Float32Array): number {
  if (left.length !== right.length) return -1;
  let [product, ofLeft, ofRight] = [0, 0, 0];
  for (let at = 0; at < left.length; at++) {
    product += left[at]! * right[at]!;
    ofLeft += left[at]! ** 2;
    ofRight += right[at]! ** 2;
  }
  return ofLeft === 0 || ofRight === 0 ? -1 : product / Math.sqrt(ofLeft * ofRight);
}
