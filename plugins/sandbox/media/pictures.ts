/** Answers one image request of the vendor: painted after the directed delay, and billed even if the client disconnects. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Usage } from '../../common/domain/usage.ts';
import { badRequest, Fault, orderedFault } from '../fault.ts';
import type { JsonObject } from '../json.ts';
import { cutOff, type Plan, play, untilClosed, wait } from '../paced-stream.ts';
import type { Frame } from '../protocol.ts';
import { bearerKey } from '../protocols/chat-faults.ts';
import { parse, readBody, requestIdOf } from '../request-body.ts';
import type { Directives } from '../script/directives.ts';
import { sendJson, type Vendor } from '../vendor-state.ts';
import { arkPictures } from './ark-images.ts';
import { seedOf } from './canvas.ts';
import type { ErrorEncoder, ImageParams, Picture, PictureDialect, PictureStreaming } from './dialect.ts';
import { imageLink, pictureOf } from './links.ts';
import { openaiPictures } from './openai-images.ts';
import { xaiPictures } from './xai-images.ts';

const numbers = new Set(['n', 'output_compression', 'partial_images']);

/** Throws a 400 fault for an invalid form, or for text instead of a file. */
async function formOf(bytes: Buffer, contentType: string): Promise<JsonObject> {
  const headers = { 'content-type': contentType };
  const form = await new Response(new Uint8Array(bytes), { headers }).formData().catch(() => {
    throw badRequest('We could not parse the form of your request.');
  });
  const images: object[] = [];
  const body: Record<string, unknown> = {};
  for (const [name, value] of form) {
    if (name === 'image' || name === 'image[]') images.push({ image_url: await dataUrl(value, name) });
    else if (name === 'mask') body[name] = { image_url: await dataUrl(value, name) };
    else if (typeof value !== 'string') throw badRequest(`The field '${name}' takes no file.`, name);
    else body[name] = numbers.has(name) ? Number(value) : value === 'true' || value;
  }
  return { ...body, images };
}

/** The official API identifies files by content; the sandbox requires a content type. */
async function dataUrl(value: File | string, name: string): Promise<string> {
  if (typeof value === 'string' || value.size === 0)
    throw badRequest('Invalid image file.', name, 'invalid_image_file');
  const bytes = Buffer.from(await value.arrayBuffer());
  return `data:${value.type};base64,${bytes.toString('base64')}`;
}

export type PictureProtocol = 'openai-images' | 'xai-images' | 'ark-images';
const dialects: Record<PictureProtocol, PictureDialect> = {
  'openai-images': openaiPictures,
  'xai-images': xaiPictures,
  'ark-images': arkPictures,
};

/** Never rejects: faults are answered in the protocol's own error form. */
export async function servePictures(
  vendor: Vendor,
  protocol: PictureProtocol,
  edits: boolean,
  request: IncomingMessage,
  answer: ServerResponse,
): Promise<void> {
  const dialect = dialects[protocol];
  await answering(vendor, dialect, answer, async (id) => {
    const bytes = await readBody(request);
    checkKey(vendor, request);
    const type = request.headers['content-type'] ?? '';
    const isForm = edits && dialect.takesForms === true && type.startsWith('multipart/form-data');
    const params = dialect.decode(isForm ? await formOf(bytes, type) : parse(bytes), edits);
    await paint({ vendor, dialect, params, id, origin: originOf(request), requestId: requestIdOf(request) }, answer);
  });
}

/** Does the work and answers its errors in the dialect's form. */
export async function answering(
  vendor: Vendor,
  errors: ErrorEncoder,
  answer: ServerResponse,
  work: (id: string) => Promise<void>,
): Promise<void> {
  const id = vendor.nextId();
  try {
    await work(id);
  } catch (error) {
    if (answer.headersSent || answer.destroyed) return void answer.destroy();
    const fault = error instanceof Fault ? error : new Fault(500, 'The sandbox failed.');
    const { body, headers } = errors.fault(fault, id);
    sendJson(answer, fault.status, { 'x-request-id': `req_${id}`, ...headers }, body);
  }
}

/** Throws a 401 fault. */
export function checkKey(vendor: Vendor, { headers }: IncomingMessage): void {
  if (vendor.key !== undefined && bearerKey(headers.authorization) !== vendor.key)
    throw new Fault(401, 'The sandbox does not know this API key.');
}

/** Base URL of its files, as the client reaches it. */
export function originOf({ headers }: IncomingMessage): string {
  return `http://${headers.host ?? '127.0.0.1'}`;
}

export interface Painting {
  readonly vendor: Vendor;
  readonly dialect: Pick<PictureDialect, 'usage' | 'encode' | 'moderated' | 'streaming'>;
  readonly params: ImageParams;
  readonly id: string;
  readonly origin: string;
  readonly requestId: string | undefined;
  /** The answer is the only event of a stream. */
  readonly isStream?: boolean;
}

/** Painting costs the same after a disconnect. Throws directed faults. */
export async function paint(painting: Painting, answer: ServerResponse): Promise<void> {
  const { vendor, dialect, params, id } = painting;
  const { directives } = params;
  const startedAt = vendor.now();
  vendor.bill.opened();
  answer.once('close', () => vendor.bill.closed());
  const delayMs = directives.takes ?? directives.delay ?? vendor.firstByteMs;
  if (delayMs > 0) await wait(answer, delayMs);
  if (directives.status !== undefined) throw orderedFault(directives.status, directives.retry_after);
  const isStalled = directives.stall !== undefined && params.previews === undefined;
  if (directives.stuck || isStalled) return await untilClosed(answer);
  const headers = { 'x-request-id': `req_${id}` };
  if (directives.moderated || directives.refuse) {
    const { status, body } = dialect.moderated(params);
    return sendJson(answer, status, headers, jsonOf(body));
  }
  const pictures = picturesOf(painting);
  const created = Math.floor(startedAt / 1000);
  if (params.previews !== undefined && dialect.streaming !== undefined) {
    const painted = { params, picture: pictures[0], created };
    const { usage, outcome } = await streamPicture(answer, dialect.streaming, painted, vendor.chunkMs);
    if (directives.first_error === undefined) enter(painting, usage, startedAt, outcome);
    return;
  }
  charge(painting, pictures, startedAt, answer);
  if (answer.destroyed) return;
  if (directives.error_after !== undefined) throw orderedFault(directives.error_after, directives.retry_after);
  await sendPictures(painting, dialect.encode(params, pictures, created), headers, answer);
}

async function sendPictures(
  { params: { directives }, isStream = false }: Painting,
  made: object,
  headers: Record<string, string>,
  answer: ServerResponse,
): Promise<void> {
  const body = isStream ? `data: ${JSON.stringify(made)}\r\n\r\n` : jsonOf(made);
  const type = isStream ? 'text/event-stream' : 'application/json';
  answer.writeHead(200, { ...headers, 'content-type': type, 'content-length': Buffer.byteLength(body) });
  if (directives.cut_after === undefined) return void answer.end(body);
  answer.write(body.slice(0, body.length >> 1));
  await cutOff(answer);
}

function jsonOf(body: object): string {
  return `${JSON.stringify(body, null, 2)}\n`;
}

/** `partial`: all but the first failed; `twice`: each picture occurs twice, and is charged once. */
function picturesOf({ vendor, params, origin }: Painting): Picture[] {
  const { directives } = params;
  if (directives.empty || directives.failed) return directives.failed ? [undefined] : [];
  const pictures = Array.from({ length: params.count }, (_, index): Picture => {
    if (directives.partial && index > 0) return undefined;
    const seed = seedOf(params.model, params.prompt, index);
    if (!params.asBytes) return { url: imageLink(origin, seed, params.size, vendor.now(), directives.link_lasts) };
    return { base64: pictureOf(seed, params.size).bytes.toString('base64') };
  });
  return directives.twice ? pictures.flatMap((picture) => [picture, picture]) : pictures;
}

function charge(painting: Painting, pictures: readonly Picture[], startedAt: number, answer: ServerResponse): void {
  const { vendor, dialect, params } = painting;
  const { directives } = params;
  if (directives.failed) return;
  const left = answer.destroyed;
  const made = directives.empty ? params.count : Math.min(params.count, pictures.filter(Boolean).length);
  const outcome = left || directives.cut_after !== undefined ? 'cut' : 'complete';
  const entry = enter(painting, dialect.usage(params, made), startedAt, outcome);
  if (left) return;
  answer.once('close', () => {
    if (!answer.writableFinished) vendor.bill.turnedOutCut(entry);
  });
}

function enter({ vendor, params, id, requestId }: Painting, usage: Usage, at: number, outcome: 'complete' | 'cut') {
  const common = { protocol: 'images', model: params.model, requestId, answerId: id } as const;
  return vendor.bill.add({ ...common, at, endedAt: vendor.now(), usage, outcome });
}

interface Streamed {
  readonly usage: Usage;
  readonly outcome: 'complete' | 'cut';
}

/** Writes the head too. `created` in seconds. */
async function streamPicture(
  answer: ServerResponse,
  streaming: PictureStreaming,
  { params, picture, created }: { readonly params: ImageParams; readonly picture: Picture; readonly created: number },
  usualDelayMs: number,
): Promise<Streamed> {
  const { directives } = params;
  answer.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  if (directives.first_error !== undefined) {
    answer.end(streaming.fault(orderedFault(directives.first_error)));
    return { usage: {}, outcome: 'cut' };
  }
  const previews = Array.from({ length: params.previews ?? 0 }, (_, index): Frame => {
    return { bytes: streaming.preview(params, picture, index, created), chunk: true, text: 1 };
  });
  const end: Frame = { bytes: streaming.completed(params, picture, created), ending: true };
  const plan: Plan = {
    chunkDelayMs: directives.chunk_delay ?? usualDelayMs,
    fate: fateOf(directives, previews.length),
    noTerminal: directives.no_terminal === true,
    errorBytes: () => streaming.fault(orderedFault(directives.mid_error ?? 500)),
  };
  const { produced, outcome } = await play(answer, [...previews, end], plan);
  answer.end();
  const isWhole = outcome === 'complete';
  return { usage: isWhole ? streaming.usage(params) : streaming.usageOfPreviews(params, produced.text), outcome };
}

function fateOf({ cut_after: cutAfter, stall, mid_error: midError }: Directives, previews: number): Plan['fate'] {
  if (cutAfter !== undefined) return { kind: 'cut', afterChunks: cutAfter };
  if (stall !== undefined) return { kind: 'stall', afterChunks: stall };
  return midError === undefined ? undefined : { kind: 'error', afterChunks: Math.ceil(previews / 2) };
}
