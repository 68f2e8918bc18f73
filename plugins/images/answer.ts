/** Reads a vendor's answer to an image request: a refusal is thrown, a success goes on byte for byte with its usage told. */
import type { Answer } from '../../core/contract.ts';
import { isObject, tryParseBytes } from '../../core/json.ts';
import { classify, classifyBody, notAnAnswer } from '../../core/refusals.ts';
import { maxScrubbedBytes } from '../../core/scrub.ts';
import type { UsageReport } from '../../core/vocabulary.ts';
import { type Question, reportOf } from './usage.ts';

/** `now` is wall-clock milliseconds; `key` is the vendor's, which its words may quote. Throws an UpstreamRefusal. */
export async function readAnswer(
  answer: Answer,
  question: Question,
  now: number,
  key: string,
): Promise<{ answer: Answer; report: UsageReport }> {
  if (answer.status >= 300) {
    throw classify(answer.status, answer.headers, await bytesOf(answer.body, maxScrubbedBytes), now, key);
  }
  const body = await bytesOf(answer.body, Number.POSITIVE_INFINITY);
  const json = tryParseBytes(body);
  if (!isObject(json)) throw notAnAnswer('the body is no JSON object', body[0] !== 0x3c);
  const { data } = json;
  if (!Array.isArray(data)) {
    if (isObject(json['error'])) throw classifyBody(json, answer.headers, body, now, key);
    throw notAnAnswer('the answer holds no images', true);
  }
  const headers = { 'content-type': answer.headers['content-type'] ?? 'application/json' };
  return { answer: { status: answer.status, headers, body }, report: reportOf(json, data, question) };
}

/** Reads no further than `maxBytes` and a chunk. */
async function bytesOf(body: Answer['body'], maxBytes: number): Promise<Uint8Array> {
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) return body;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) break;
  }
  return Buffer.concat(chunks);
}
