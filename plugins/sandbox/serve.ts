/** One request of the vendor: its body, its key, what it asks, and every way in which it is refused. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Ask, promptTokens } from './ask.ts';
import { chat } from './chat.ts';
import { Fault, orderedFault } from './fault.ts';
import { gemini } from './gemini.ts';
import { parse, readBody, requestIdOf } from './incoming.ts';
import { geminiPictures, readGeminiPicture, wantsPicture } from './media/gemini-images.ts';
import { originOf, paint } from './media/pictures.ts';
import { messages } from './messages.ts';
import { wait } from './play.ts';
import type { Call, Protocol } from './protocol.ts';
import { responses } from './responses.ts';
import { run, sendJson, type Vendor } from './run.ts';

const protocols: Record<Call['protocol'], Protocol> = { chat, responses, messages, gemini };

const page =
  '<!DOCTYPE html>\n<html><head><title>Error</title></head><body><h1>Something went wrong</h1></body></html>\n';

/** Never rejects: faults are answered in the protocol's own words. */
export async function serve(
  vendor: Vendor,
  call: Call,
  request: IncomingMessage,
  answer: ServerResponse,
): Promise<void> {
  const protocol = protocols[call.protocol];
  const id = vendor.nextId();
  try {
    const bytes = await readBody(request);
    if (vendor.key !== undefined && protocol.key(call) !== vendor.key) {
      throw new Fault(401, 'The sandbox does not know this API key.');
    }
    const sent = parse(bytes);
    const body = call.protocol === 'responses' ? vendor.kept.continued(sent) : sent;
    if (call.protocol === 'gemini' && call.operation === 'answer' && !call.pathStream && wantsPicture(body)) {
      const ask = readGeminiPicture(body, call.pathModel ?? '');
      const from = { origin: originOf(request), requestId: requestIdOf(request) };
      return await paint({ vendor, dialect: geminiPictures, ask, id, ...from }, answer);
    }
    const ask = protocol.read(body, call);
    if (call.operation === 'count') {
      sendJson(answer, 200, protocol.headers(id), protocol.counted(promptTokens(ask)));
    } else if (!(await refused(answer, ask))) {
      const turn = await run(vendor, protocol, { call, ask, body, id }, answer, requestIdOf(request));
      if (turn !== undefined) vendor.kept.keep(turn, bytes.length);
    }
  } catch (error) {
    if (answer.headersSent || answer.destroyed) return void answer.destroy();
    const fault = error instanceof Fault ? error : new Fault(500, 'The sandbox failed.');
    const { body, headers } = protocol.fault({ fault, call, id, now: vendor.now() });
    sendJson(answer, fault.status, { ...protocol.headers(id), ...headers }, body);
  }
}

/**
 * Ordered refusals, after the ordered delay: nothing runs and nothing is billed. A whole answer has no middle to break
 * in, so there the orders for a stream's errors are refusals too. true when it was answered with a page.
 */
async function refused(answer: ServerResponse, ask: Ask): Promise<boolean> {
  const { status, html, delay, retry_after: retryAfter, mid_error: midError, first_error: firstError } = ask.directives;
  const failing = status ?? (ask.stream ? undefined : (midError ?? firstError));
  if (failing === undefined && !html) return false;
  if (delay !== undefined) await wait(answer, delay);
  if (!html) throw orderedFault(failing!, retryAfter);
  answer.writeHead(failing ?? 200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
  return true;
}
