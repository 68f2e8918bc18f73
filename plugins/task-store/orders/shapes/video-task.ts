/** The video task: `{id, model, status, content: {video_url}, …}`, from queued over running to succeeded or failed. Pure. */
import { isObject, type JsonObject, objectOf } from '../../../../core/json/json.ts';
import { invalid, readBody } from '../../../../core/json/request-body.ts';
import type { Order, Reference } from '../../../common/media/adapters.ts';
import type { Shape, Submission, Task } from '../../contract.ts';
import { optionalAddress, optionalEnum, optionalFlag, optionalWhole, requiredText, restOf } from './fields.ts';
import { readAddress, readImage } from './references.ts';
import { codeOf, reasonOf, type StateNames, secondsOf } from './states.ts';

const stateNames: StateNames = {
  queued: 'queued',
  running: 'running',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'failed',
  expired: 'failed',
};

/** Section 4.9 of the interface; `resolution` is the third-party protocol's. */
const ratios = ['16:9', '9:16', '1:1', '4:3', '3:4', '21:9', 'adaptive'] as const;
const resolutions = ['480p', '720p', '1080p'] as const;
const longestSeconds = 60;
/** The model decides. */
const anyDuration = -1;
/** More than any vendor accepts. */
const mostItems = 32;

const read = new Set([
  'model',
  'content',
  'ratio',
  'resolution',
  'duration',
  'generate_audio',
  'watermark',
  'callback_url',
]);
const fields = {
  prompt: 'content',
  references: 'content',
  seconds: 'duration',
  generateAudio: 'generate_audio',
} as const;

export const videoTask: Shape = {
  read: readVideoTask,

  submitted: (task) => head(task),

  // As in the protocol.
  deleted: () => ({}),

  render: (task) => {
    const error = reasonOf(task);
    return { ...head(task), ...contentOf(task), ...(error === undefined ? {} : { error }) };
  },
};

/** A page of tasks; list entries have an object where a single task has its `error`. */
export function listedVideos(total: number, tasks: readonly Task[]): JsonObject {
  return {
    total,
    items: tasks.map((task) => {
      const message = reasonOf(task);
      const failure = message === undefined ? {} : { failure_reason: { code: codeOf(task), message } };
      return { ...head(task), ...contentOf(task), ...failure };
    }),
  };
}

function contentOf({ results, state }: Task): JsonObject {
  const video = results.find(({ mediaType }) => mediaType.startsWith('video/')) ?? results[0];
  return state === 'succeeded' && video !== undefined ? { content: { video_url: video.url } } : {};
}

/** The settings of a clamped request, by the request's names. */
function clampedOf({ clamped = {} }: Order): JsonObject {
  const { seconds, ratio } = clamped;
  return { ...(seconds === undefined ? {} : { duration: seconds }), ...(ratio === undefined ? {} : { ratio }) };
}

function head(task: Task): JsonObject {
  return {
    id: task.id,
    model: task.model,
    status: stateNames[task.state],
    created_at: secondsOf(task.createdAtMs),
    updated_at: secondsOf(task.updatedAtMs),
    ...clampedOf(task.order),
  };
}

/** Throws invalid_request that names the field. */
function readVideoTask(bytes: Uint8Array): Submission {
  const { json } = readBody(bytes, read);
  const model = requiredText(json, 'model');
  const items = itemsOf(json);
  const ratio = optionalEnum(json, 'ratio', ratios);
  const resolution = optionalEnum(json, 'resolution', resolutions);
  const seconds = durationOf(json);
  const generateAudio = optionalFlag(json, 'generate_audio');
  const watermark = optionalFlag(json, 'watermark');
  const order: Order = {
    kind: 'video',
    model,
    prompt: textIn(items),
    count: 1,
    ...(ratio === undefined || ratio === 'adaptive' ? {} : { ratio }),
    ...(resolution === undefined ? {} : { resolution }),
    ...(seconds === undefined ? {} : { seconds }),
    ...(generateAudio === undefined ? {} : { generateAudio }),
    ...(watermark === undefined ? {} : { watermark }),
    references: referencesIn(items),
    extra: restOf(json, read),
    fields,
  };
  return { order, waits: false, form: 'url', callbackUrl: optionalAddress(json, 'callback_url') };
}

function durationOf(json: JsonObject): number | undefined {
  if (json['duration'] === anyDuration) return undefined;
  return optionalWhole(json, 'duration', 1, longestSeconds);
}

interface Item {
  readonly value: JsonObject;
  readonly type: 'text' | 'image_url' | 'video_url' | 'audio_url';
  /** Path of the item: `content[2]`. */
  readonly field: string;
}
const types = ['text', 'image_url', 'video_url', 'audio_url'] as const;

function itemsOf({ content }: JsonObject): Item[] {
  if (content === undefined || content === null) throw invalid('The field "content" is missing.', 'content');
  if (!Array.isArray(content)) throw invalid('The field "content" must be a list.', 'content');
  if (content.length === 0) throw invalid('The field "content" must hold at least one item.', 'content');
  if (content.length > mostItems) throw invalid(`The field "content" may hold at most ${mostItems} items.`, 'content');
  return content.map((value: unknown, index) => {
    const field = `content[${index}]`;
    if (!isObject(value)) throw invalid(`The field "${field}" must be an object.`, field);
    const type = types.find((name) => name === value['type']);
    if (type === undefined)
      throw invalid(`The field "${field}.type" must be one of ${types.join(', ')}.`, `${field}.type`);
    return { value, type, field };
  });
}

/** The only text; empty if the images suffice. */
function textIn(items: readonly Item[]): string {
  const [item, second] = items.filter(({ type }) => type === 'text');
  if (second !== undefined) throw invalid('There may be one text item.', second.field);
  if (item === undefined) return '';
  const { text } = item.value;
  const field = `${item.field}.text`;
  if (typeof text !== 'string' || text.trim() === '') throw invalid(`The field "${field}" must be a text.`, field);
  return text;
}

const roles: Readonly<Record<Exclude<Item['type'], 'text'>, Readonly<Record<string, Reference['role']>>>> = {
  image_url: { reference_image: 'image', first_frame: 'first_frame', last_frame: 'last_frame' },
  video_url: { reference_video: 'video' },
  audio_url: { reference_audio: 'audio' },
};

function referencesIn(items: readonly Item[]): Reference[] {
  const imageCount = items.filter(({ type }) => type === 'image_url').length;
  return items.flatMap((item) => {
    if (item.type === 'text') return [];
    const role = roleOf(item, item.type, imageCount);
    const field = `${item.field}.${item.type}.url`;
    const url = objectOf(item.value[item.type])?.['url'];
    return [item.type === 'image_url' ? readImage(url, field, role) : readAddress(url, field, role)];
  });
}

/** A single image without a role is the first frame. */
function roleOf({ value, field }: Item, type: Exclude<Item['type'], 'text'>, imageCount: number): Reference['role'] {
  const known = roles[type];
  const role = value['role'] ?? undefined;
  if (role === undefined) {
    if (type === 'image_url') return imageCount === 1 ? 'first_frame' : 'image';
    return type === 'video_url' ? 'video' : 'audio';
  }
  if (typeof role === 'string' && Object.hasOwn(known, role)) return known[role]!;
  throw invalid(`The field "${field}.role" must be one of ${Object.keys(known).join(', ')}.`, `${field}.role`);
}
