/** The OpenAI videos protocol on the same tasks: `POST /v1/videos`, `GET /v1/videos/{id}`. Pure. */
import { type JsonObject, objectOf } from '../../../../core/json/json.ts';
import { invalid, readBody } from '../../../../core/json/request-body.ts';
import { boundaryIn, type FormPart, readMultipart } from '../../../common/kit/forms/multipart.ts';
import type { Order, Reference } from '../../../common/media/adapters.ts';
import type { Shape, Submission, Task } from '../../contract.ts';
import { optionalAddress, optionalText, requiredText, restOf } from './fields.ts';
import { sizeOf } from './image-request.ts';
import { readImage, readImageFile } from './references.ts';
import { codeOf, reasonOf, type StateNames, secondsOf } from './states.ts';

const stateNames: StateNames = {
  queued: 'queued',
  running: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  cancelled: 'failed',
  expired: 'failed',
};

const longestSeconds = 60;
const read = new Set(['model', 'prompt', 'seconds', 'size', 'input_reference', 'callback_url']);
const fields = { references: 'input_reference', ratio: 'size', resolution: 'size' } as const;

export const openaiVideos: Shape = {
  read: readVideo,
  submitted: renderVideo,
  render: renderVideo,
  deleted: ({ id }) => ({ id, object: 'video.deleted', deleted: true }),
  deletesCancelled: true,
};

function renderVideo(task: Task): JsonObject {
  const { order } = task;
  const reason = reasonOf(task);
  return {
    id: task.id,
    object: 'video',
    model: task.model,
    status: stateNames[task.state],
    progress: task.state === 'succeeded' ? 100 : Math.floor(task.progress),
    created_at: secondsOf(task.createdAtMs),
    completed_at: task.completedAtMs === undefined ? null : secondsOf(task.completedAtMs),
    expires_at: null,
    prompt: order.prompt,
    seconds: order.seconds === undefined ? null : String(order.seconds),
    size: order.size === undefined ? null : `${order.size.width}x${order.size.height}`,
    remixed_from_video_id: null,
    error: reason === undefined ? null : { code: codeOf(task), message: reason },
  };
}

/** Throws invalid_request that names the field. */
function readVideo(bytes: Uint8Array, headers: Readonly<Record<string, string | undefined>>): Submission {
  const boundary = boundaryIn(headers['content-type']);
  const json = boundary === undefined ? readBody(bytes, read).json : formAsJson(readMultipart(bytes, boundary));
  const model = requiredText(json, 'model');
  const prompt = requiredText(json, 'prompt');
  const seconds = secondsIn(json);
  const order: Order = {
    kind: 'video',
    model,
    prompt,
    count: 1,
    ...geometryOf(json),
    ...(seconds === undefined ? {} : { seconds }),
    references: referencesIn(json),
    extra: restOf(json, read),
    fields,
  };
  return { order, waits: false, form: 'url', callbackUrl: optionalAddress(json, 'callback_url') };
}

/** Official clients send a form: a file is its bytes, `input_reference[image_url]` is a member of an object. */
function formAsJson(parts: readonly FormPart[]): JsonObject {
  const members = new Map<string, unknown>();
  for (const { name, filename, bytes } of parts) {
    const [, outer = name, inner] = /^([^[]+)\[([^\]]+)\]$/.exec(name) ?? [];
    if (members.has(outer)) throw invalid(`The field "${outer}" is there more than once.`, outer);
    if (filename !== undefined && name !== 'input_reference') throw invalid(`The field "${name}" takes no file.`, name);
    const value = filename === undefined ? bytes.toString('utf8') : bytes;
    members.set(outer, inner === undefined ? value : { [inner]: value });
  }
  return Object.fromEntries(members);
}

/** Official clients send a string. */
function secondsIn({ seconds }: JsonObject): number | undefined {
  if (seconds === undefined || seconds === null) return undefined;
  const count = typeof seconds === 'string' && /^\d{1,3}$/.test(seconds) ? Number(seconds) : seconds;
  if (typeof count === 'number' && Number.isInteger(count) && count >= 1 && count <= longestSeconds) return count;
  throw invalid(`The field "seconds" must be a whole number from 1 to ${longestSeconds}.`, 'seconds');
}

/** The shorter edge gives the resolution. */
function geometryOf(json: JsonObject): Pick<Order, 'size' | 'resolution'> {
  const text = optionalText(json, 'size')?.toLowerCase();
  if (text === undefined || text === 'auto') return {};
  const size = sizeOf(text);
  if (size === undefined) throw invalid('The field "size" must be pixels such as 1280x720.', 'size');
  const edge = Math.min(size.width, size.height);
  if (edge > 1_080) throw invalid('The shorter edge of "size" must be at most 1080 pixels.', 'size');
  if (edge <= 480) return { size, resolution: '480p' };
  return { size, resolution: edge <= 720 ? '720p' : '1080p' };
}

/** An address or base64 as a string, or as `{image_url}`. */
function referencesIn(json: JsonObject): Reference[] {
  const value = json['input_reference'] ?? undefined;
  if (value === undefined) return [];
  if (Buffer.isBuffer(value)) return [readImageFile(value, 'input_reference', 'first_frame')];
  const inner = objectOf(value);
  if (inner === undefined) return [readImage(value, 'input_reference', 'first_frame')];
  const { image_url: imageUrl } = inner;
  const url = objectOf(imageUrl)?.['url'] ?? imageUrl;
  return [readImage(url, 'input_reference.image_url', 'first_frame')];
}
