/** Handles one request of the vendor: its body, its key, its decoding, and every refusal. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Fault, orderedFault } from './fault.ts';
import type { JsonObject } from './json.ts';
import { decodeGeminiImages, geminiPictures, wantsPicture } from './media/gemini-images.ts';
import { originOf, paint } from './media/pictures.ts';
import { wait } from './paced-stream.ts';
import type { Call, Protocol, Turn } from './protocol.ts';
import { chat } from './protocols/chat.ts';
import { gemini } from './protocols/gemini.ts';
import { messages } from './protocols/messages.ts';
import { responses } from './protocols/responses.ts';
import { parse, readBody, requestIdOf } from './request-body.ts';
import { run } from './run.ts';
import { type ModelRequest, promptTokens } from './script/model-request.ts';
import { sendJson, type Vendor } from './vendor-state.ts';

const protocols: Record<Call['protocol'], Protocol> = { chat, responses, messages, gemini };

const page =
  '<!DOCTYPE html>\n<html><head><title>Error</title></head><body><h1>Something went wrong</h1></body></html>\n';

/** Never rejects: faults are answered in the protocol's own error form. */
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
    const body = call.protocol === 'responses' ? vendor.responses.continued(sent) : sent;
    if (wantsPainting(call, body)) {
      const modelRequest = decodeGeminiImages(body, call.pathModel ?? '');
      const from = { origin: originOf(request), requestId: requestIdOf(request), isStream: call.pathStream === true };
      return await paint({ vendor, dialect: geminiPictures, params: modelRequest, id, ...from }, answer);
    }
    await answerCall(vendor, { call, body, bytes: bytes.length, id, requestId: requestIdOf(request) }, answer);
  } catch (error) {
    if (answer.headersSent || answer.destroyed) return void answer.destroy();
    const fault = error instanceof Fault ? error : new Fault(500, 'The sandbox failed.');
    const { body, headers } = protocol.fault({ fault, call, id, now: vendor.now() });
    sendJson(answer, fault.status, { ...protocol.headers(id), ...headers }, body);
  }
}

export interface CallRequest {
  readonly call: Call;
  readonly body: JsonObject;
  /** Bytes of the body, for the limit of stored bodies. */
  readonly bytes: number;
  readonly id: string;
  readonly requestId: string | undefined;
}

/** Resolves with the turn if a whole answer of a model was sent. Throws a Fault for a refusal. */
export async function answerCall(
  vendor: Vendor,
  { call, body, bytes, id, requestId }: CallRequest,
  answer: ServerResponse,
): Promise<Turn | undefined> {
  const protocol = protocols[call.protocol];
  const modelRequest = protocol.decode(body, call);
  if (call.operation === 'count') {
    sendJson(answer, 200, protocol.headers(id), protocol.counted(promptTokens(modelRequest)));
    return undefined;
  }
  if (await refused(answer, modelRequest)) return undefined;
  const turn = await run(vendor, protocol, { call, modelRequest, body, id }, answer, requestId);
  if (turn !== undefined) vendor.responses.keep(turn, bytes);
  return turn;
}

/** An answer of this protocol may be a picture. */
function wantsPainting({ protocol, operation, pathModel }: Call, body: JsonObject): boolean {
  return protocol === 'gemini' && operation === 'answer' && wantsPicture(body, pathModel);
}

/**
 * Directed refusals, after the directed delay: nothing runs and nothing is billed. A whole answer has no middle to break in,
 * so directives for stream errors are refusals too. true if it was answered with a page.
 */
async function refused(answer: ServerResponse, modelRequest: ModelRequest): Promise<boolean> {
  const {
    status,
    html,
    delay,
    retry_after: retryAfter,
    mid_error: midError,
    first_error: firstError,
  } = modelRequest.directives;
  const failing = status ?? (modelRequest.stream ? undefined : (midError ?? firstError));
  if (failing === undefined && !html) return false;
  if (delay !== undefined) await wait(answer, delay);
  if (!html) throw orderedFault(failing!, retryAfter);
  answer.writeHead(failing ?? 200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
  return true;
}
