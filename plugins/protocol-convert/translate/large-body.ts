/** Translated requests that may be large: the event loop turns between their steps, and their JSON is written in slices. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Exchange } from '../../../core/contract/contract.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import { writeInSlices } from '../../../core/json/write.ts';
import type { Opened } from '../../common/wire/protocols.ts';
import type { ProtocolConvertConfig } from '../config.ts';
import { TranslationBounds } from './bounds.ts';

/** Bodies above this size are translated step by step. */
const largeBytes = 64 * 1024;

/** Whether the request is large, or grows by the conversation that it refers to. */
export function isLarge({ request }: Exchange, { clientJson }: Opened): boolean {
  return request.body.length > largeBytes || clientJson !== undefined;
}

/** undefined: the request is too small to have more values than are accepted, as each takes two bytes. */
export function boundsOf(
  { request }: Exchange,
  { clientJson }: Opened,
  { translated_values: most }: ProtocolConvertConfig,
): TranslationBounds | undefined {
  return request.body.length > 2 * most || clientJson !== undefined ? new TranslationBounds(most) : undefined;
}

/** Lets others run. Rejects when the exchange is aborted meanwhile. */
export async function pause({ signal }: Exchange): Promise<void> {
  await nextTurn();
  signal.throwIfAborted();
}

/** The JSON of a request; of a large one the parts. */
export async function encodedBody(exchange: Exchange, body: JsonObject, large: boolean): Promise<Buffer | Buffer[]> {
  return large ? writeInSlices(body, { pause: () => pause(exchange) }) : Buffer.from(JSON.stringify(body));
}
