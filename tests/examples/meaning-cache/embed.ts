/** Vectors of texts: by a model of the gateway itself, or by the letters of a text. */
import type { Exchange, Host } from 'model-gateway';
import { caller } from 'model-gateway/domain';
import { listOf, objectOf, tryParse } from 'model-gateway/kit';

export type Embed = (exchange: Exchange, text: string) => Promise<readonly number[]>;

export function embedderOf(host: Host, model: string | undefined): Embed {
  if (model === undefined) return async (_exchange, text) => byLetters(text);
  return async (exchange, text) => {
    const answer = await host.perform({
      method: 'POST',
      path: '/v1/embeddings',
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify({ model, input: text, encoding_format: 'float' })),
      remoteAddress: exchange.request.remoteAddress,
      signal: exchange.signal,
      // The client's own call, with its limits and its charge.
      prepare: (own) => own.set(caller, exchange.get(caller)),
    });
    const chunks: Uint8Array[] = [];
    for await (const chunk of answer.body) chunks.push(chunk);
    const [first] = listOf(objectOf(tryParse(Buffer.concat(chunks).toString()))?.['data']);
    const vector = listOf(objectOf(first)?.['embedding']).map(Number);
    if (answer.status !== 200 || vector.length === 0)
      throw new Error(`the embedding was answered with ${answer.status}`);
    return vector;
  };
}

const size = 256;

/** Counts of three letters in a row. */
function byLetters(text: string): number[] {
  const letters = ` ${text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()} `;
  const vector = new Array<number>(size).fill(0);
  for (let at = 0; at + 3 <= letters.length; at++) {
    let hash = 0;
    for (const letter of letters.slice(at, at + 3)) hash = (hash * 31 + letter.codePointAt(0)!) % 65_521;
    vector[hash % size]! += 1;
  }
  return vector;
}

/** The cosine of the angle between two vectors. */
export function nearness(left: readonly number[], right: readonly number[]): number {
  let [product, ofLeft, ofRight] = [0, 0, 0];
  for (const [index, one] of left.entries()) {
    const other = right[index] ?? 0;
    product += one * other;
    ofLeft += one * one;
    ofRight += other * other;
  }
  return ofLeft === 0 || ofRight === 0 ? 0 : product / Math.sqrt(ofLeft * ofRight);
}
