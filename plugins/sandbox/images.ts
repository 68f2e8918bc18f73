/** One image request of the vendor: painted after the ordered while, and billed whether or not somebody still waits for it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { bearerKey, chatFault, chatHeaders } from './chat-faults.ts';
import { Fault, orderedFault } from './fault.ts';
import { type ImageAsk, imageTokens, inputTokens, readImageAsk } from './images-ask.ts';
import { parse, readBody, requestIdOf } from './incoming.ts';
import { cutOff, wait } from './play.ts';
import { sendJson, type Vendor } from './run.ts';

/** One grey pixel, as a PNG. */
const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==';

/** Never rejects: faults are answered in the protocol's words. */
export async function serveImages(vendor: Vendor, request: IncomingMessage, answer: ServerResponse): Promise<void> {
  const id = vendor.nextId();
  try {
    const bytes = await readBody(request);
    if (vendor.key !== undefined && bearerKey(request.headers.authorization) !== vendor.key)
      throw new Fault(401, 'The sandbox does not know this API key.');
    await paint(vendor, readImageAsk(parse(bytes)), id, answer, requestIdOf(request));
  } catch (error) {
    if (answer.headersSent || answer.destroyed) return void answer.destroy();
    const fault = error instanceof Fault ? error : new Fault(500, 'The sandbox failed.');
    const { body, headers } = chatFault({ fault });
    sendJson(answer, fault.status, { ...chatHeaders(id), ...headers }, body);
  }
}

/** Painting costs the same when nobody waits for the pictures any more. */
async function paint(
  vendor: Vendor,
  ask: ImageAsk,
  id: string,
  answer: ServerResponse,
  requestId: string | undefined,
): Promise<void> {
  const startedAt = vendor.now();
  const { status, delay, retry_after: retryAfter, cut_after: cutAfter } = ask.directives;
  vendor.bill.opened();
  answer.once('close', () => vendor.bill.closed());
  const delayMs = delay ?? vendor.firstByteMs;
  if (delayMs > 0) await wait(answer, delayMs);
  if (status !== undefined) throw orderedFault(status, retryAfter);
  const left = answer.destroyed;
  const entry = vendor.bill.add({
    at: startedAt,
    endedAt: vendor.now(),
    protocol: 'images',
    model: ask.model,
    requestId,
    answerId: id,
    usage: { input: inputTokens(ask), output_image: imageTokens(ask), image: ask.count },
    outcome: left || cutAfter !== undefined ? 'cut' : 'complete',
  });
  if (left) return;
  answer.once('close', () => {
    if (!answer.writableFinished) vendor.bill.turnedOutCut(entry);
  });
  const body = bodyOf(ask, Math.floor(startedAt / 1000));
  if (cutAfter === undefined) return sendJson(answer, 200, chatHeaders(id), body);
  answer.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  answer.write(body.slice(0, body.length >> 1));
  await cutOff(answer);
}

function bodyOf(ask: ImageAsk, created: number): string {
  const { empty, no_usage: noUsage } = ask.directives;
  const [input, output] = [inputTokens(ask), imageTokens(ask)];
  const usage = {
    input_tokens: input,
    input_tokens_details: { image_tokens: 0, text_tokens: input },
    output_tokens: output,
    output_tokens_details: { image_tokens: output, text_tokens: 0 },
    total_tokens: input + output,
  };
  const answer = {
    created,
    background: 'opaque',
    data: empty ? [] : Array.from({ length: ask.count }, () => ({ b64_json: picture })),
    output_format: 'png',
    quality: ask.quality,
    size: ask.size,
    ...(noUsage ? {} : { usage }),
  };
  return `${JSON.stringify(answer, null, 2)}\n`;
}
