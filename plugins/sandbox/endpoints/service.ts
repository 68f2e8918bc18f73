/** Answers one request beside chat and media: decoded by its service, after the directed delay, and billed. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Usage } from '../../common/domain/usage.ts';
import { Fault, orderedFault } from '../fault.ts';
import { cutOff, untilClosed, wait } from '../paced-stream.ts';
import { bearerKey, chatFault } from '../protocols/chat-faults.ts';
import { readBody, requestIdOf } from '../request-body.ts';
import type { Directives } from '../script/directives.ts';
import { jsonHeaders, sendJson, type Vendor } from '../vendor-state.ts';

export interface ServiceRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The model in the path, and the method behind it. */
  readonly pathModel: string | undefined;
  readonly method: string | undefined;
}

/** A request as it will be answered. */
export interface Job {
  readonly model: string;
  readonly directives: Directives;
  /** What the vendor bills. */
  readonly usage: Usage;
  readonly type: string;
  /** One whole body, or pieces that are streamed. */
  readonly body: string | Buffer | readonly (string | Buffer)[];
}

export interface Service {
  /** Its form of errors: an envelope as chat has it, google.rpc.Status, or a message. */
  readonly errors: 'envelope' | 'status' | 'rerank';
  /** Throws a Fault for what the vendor would refuse. */
  decode(request: ServiceRequest, id: string): Job | Promise<Job>;
}

/** Never rejects: faults are answered in the vendor's own error form. */
export async function serveService(
  vendor: Vendor,
  service: Service,
  named: Pick<ServiceRequest, 'pathModel' | 'method'>,
  request: IncomingMessage,
  answer: ServerResponse,
): Promise<void> {
  const id = vendor.nextId();
  try {
    const body = await readBody(request);
    checkKey(vendor, request);
    const job = await service.decode({ headers: request.headers, body, ...named }, id);
    await work(vendor, job, { id, requestId: requestIdOf(request) }, answer);
  } catch (error) {
    if (answer.headersSent || answer.destroyed) return void answer.destroy();
    const fault = error instanceof Fault ? error : new Fault(500, 'The sandbox failed.');
    const retry = fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) };
    sendJson(answer, fault.status, { 'x-request-id': `req_${id}`, ...retry }, faultBody(service, fault, id));
  }
}

function checkKey({ key }: Vendor, { headers }: IncomingMessage): void {
  const given = bearerKey(headers.authorization) ?? headers['x-goog-api-key'];
  if (key !== undefined && given !== key) throw new Fault(401, 'The sandbox does not know this API key.');
}

const googleStatuses = new Map([
  [400, 'INVALID_ARGUMENT'],
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [429, 'RESOURCE_EXHAUSTED'],
  [503, 'UNAVAILABLE'],
]);

function faultBody({ errors }: Service, fault: Fault, id: string): string {
  if (errors === 'envelope') return chatFault({ fault }).body;
  const { status, message } = fault;
  if (errors === 'rerank') return JSON.stringify({ id, message, detail: message });
  return JSON.stringify({ error: { code: status, message, status: googleStatuses.get(status) ?? 'INTERNAL' } });
}

interface Ids {
  readonly id: string;
  readonly requestId: string | undefined;
}

async function work(vendor: Vendor, job: Job, ids: Ids, answer: ServerResponse): Promise<void> {
  const { directives } = job;
  const startedAt = vendor.now();
  vendor.bill.opened();
  answer.once('close', () => vendor.bill.closed());
  const delayMs = directives.delay ?? vendor.firstByteMs;
  if (delayMs > 0) await wait(answer, delayMs);
  const failing = directives.status ?? directives.first_error;
  if (failing !== undefined && !directives.html) throw orderedFault(failing, directives.retry_after);
  if (directives.html) return void sendPage(answer, failing ?? 200);
  const enter = (outcome: 'complete' | 'cut') => {
    const entry = vendor.bill.add({
      at: startedAt,
      endedAt: vendor.now(),
      protocol: 'endpoints',
      model: job.model,
      requestId: ids.requestId,
      answerId: ids.id,
      usage: job.usage,
      outcome,
    });
    answer.once('close', () => {
      if (!answer.writableFinished) vendor.bill.turnedOutCut(entry);
    });
  };
  if (answer.destroyed) return enter('cut');
  if (directives.stall !== undefined) {
    enter('cut');
    return await untilClosed(answer);
  }
  const isCut = directives.cut_after !== undefined;
  enter(isCut ? 'cut' : 'complete');
  await send(vendor, job, ids, answer);
  if (isCut) await cutOff(answer);
}

function sendPage(answer: ServerResponse, status: number): void {
  answer
    .writeHead(status, { 'content-type': 'text/html; charset=utf-8' })
    .end('<html><body><h1>Error</h1></body></html>');
}

/** The whole body, or its pieces at the directed pace; a directed cut leaves the rest out. */
async function send(
  vendor: Vendor,
  { directives, type, body }: Job,
  { id }: Ids,
  answer: ServerResponse,
): Promise<void> {
  const cutAfter = directives.cut_after;
  const headers = { 'x-request-id': `req_${id}` };
  if (typeof body === 'string' || Buffer.isBuffer(body)) {
    const bytes = Buffer.from(body);
    answer.writeHead(200, { ...jsonHeaders(headers, ''), 'content-type': type, 'content-length': bytes.length });
    if (cutAfter === undefined) answer.end(bytes);
    else answer.write(bytes.subarray(0, bytes.length >> 1));
    return;
  }
  answer.writeHead(200, { ...headers, 'content-type': type });
  const pauseMs = directives.chunk_delay ?? vendor.chunkMs;
  for (const piece of body.slice(0, cutAfter ?? body.length)) {
    if (answer.destroyed) return;
    answer.write(piece);
    if (pauseMs > 0) await wait(answer, pauseMs);
  }
  if (cutAfter === undefined) answer.end();
}
