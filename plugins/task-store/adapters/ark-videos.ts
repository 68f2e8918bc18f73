/** `ark-videos`: `/contents/generations/tasks` of Ark; charged by tokens, which follow from pixels and seconds. Pure. */

import { table } from '../../../core/contract/table.ts';
import { type JsonObject, objectOf, textOf } from '../../../core/json/json.ts';
import { readCount, type Usage } from '../../common/domain/usage.ts';
import { notAnAnswer } from '../../common/kit/upstream-errors.ts';
import type {
  Bounds,
  MadeFile,
  MediaAdapter,
  Order,
  Reference,
  Step,
  VendorRequest,
} from '../../common/media/adapters.ts';
import { raisedResolution, ratioAmong, resolutionAmong } from '../../common/media/geometry.ts';
import { failed, failedTask, readObject, unreadable } from '../../common/media/outcome.ts';
import { addressOf } from '../../common/media/references.ts';
import { droppedMembers, pickExtras, unsupported } from '../../common/media/refuse.ts';

/** At least the largest shape of the resolution; the largest published are 864x480, 1504x640 and 2176x928. */
const mostPixels: Readonly<Record<string, number>> = table({ '480p': 430_000, '720p': 970_000, '1080p': 2_100_000 });
const framesPerSecond = 24;
/** Upper bound where the model chooses the duration. */
const longestChoice = 15;
/** Seconds of each reference video: they are charged too. */
const secondsPerVideo = 15;

/**
 * Prompts may end with options of the older form (`--dur 10 --rs 1080p --frames 121`), which the vendor obeys; the
 * larger value counts.
 */
function secondsAtMost(order: Order): number {
  const { prompt, seconds } = order;
  const frames = Math.max(optionOf(prompt, /--(?:frames)\s+(\d{1,5})/), readCount(order.extra['frames']) ?? 0);
  const legacy = optionOf(prompt, /--(?:dur|duration)\s+(\d{1,4})/);
  return Math.max(seconds ?? longestChoice, legacy, Math.ceil(frames / framesPerSecond));
}

function tokensAtMost(order: Order): number {
  const named = [
    order.resolution,
    ...[...order.prompt.matchAll(/--(?:rs|resolution)\s+(\d{3,4}p)/g)].map(([, word]) => word),
  ];
  const pixels = named.map((word) => (word === undefined ? undefined : mostPixels[word]) ?? mostPixels['1080p']!);
  const shownSeconds = secondsPerVideo * order.references.filter(({ role }) => role === 'video').length;
  const frames = framesPerSecond * (secondsAtMost(order) + shownSeconds) + 1;
  return Math.ceil((Math.max(...pixels) * frames) / 1024);
}

function optionOf(prompt: string, pattern: RegExp): number {
  let most = 0;
  for (const [, digits] of prompt.matchAll(new RegExp(pattern, 'g'))) most = Math.max(most, Number(digits));
  return most;
}

const ratios = ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9'];
const supportedExtras = new Set([
  'seed',
  'frames',
  'camera_fixed',
  'return_last_frame',
  'service_tier',
  'execution_expires_after',
  'priority',
]);
const path = '/contents/generations/tasks';
const taskPath = (vendorId: string) => `${path}/${encodeURIComponent(vendorId)}`;

export const arkVideos: MediaAdapter = {
  name: 'ark-videos',
  path: '/contents/generations/tasks',
  kind: 'video',
  needsBytes: false,
  mostPerCall: 1,

  create(order, target): VendorRequest {
    const { extras, dropped } = pickExtras(order, supportedExtras);
    const ratio = ratioAmong(order, ratios);
    const resolution = resolutionAmong(order, ['480p', '720p', '1080p'], target.traits);
    const text = order.prompt === '' ? [] : [{ type: 'text', text: order.prompt }];
    const body: JsonObject = {
      model: target.model,
      content: [...text, ...order.references.map(itemOf)],
      ...(resolution === undefined ? {} : { resolution }),
      ...(ratio === undefined ? {} : { ratio }),
      ...(order.seconds === undefined ? {} : { duration: order.seconds }),
      ...(order.generateAudio === undefined ? {} : { generate_audio: order.generateAudio }),
      ...(order.watermark === undefined ? {} : { watermark: order.watermark }),
      ...extras,
    };
    const unread = [...dropped, ...droppedMembers(order, 'quality'), ...raisedResolution(order, resolution)];
    return { method: 'POST', path, body, dropped: unread };
  },

  readCreated(answer): Step {
    const read = readObject(answer);
    if ('failed' in read) return read.failed;
    const vendorId = textOf(read.json['id']);
    if (vendorId === undefined) throw unreadable('the answer names no task');
    return { state: 'queued', vendorId };
  },

  tasks: {
    poll: (vendorId) => ({ method: 'GET', path: taskPath(vendorId) }),
    /** The vendor refuses this once the task runs. */
    cancel: (vendorId) => ({ method: 'DELETE', path: taskPath(vendorId) }),

    readPolled(answer, order, vendorId): Step {
      const read = readObject(answer);
      if ('failed' in read) return read.failed;
      const { json } = read;
      const { status } = json;
      if (status === 'succeeded') return doneWith(json, order);
      if (status === 'failed') return failedTask(objectOf(json['error']));
      if (status === 'expired' || status === 'cancelled') return failed(status);
      return { state: status === 'queued' ? 'queued' : 'running', vendorId };
    },
  },

  bounds(order): Bounds {
    return {
      inputTokens: 0,
      outputTokens: tokensAtMost(order),
      images: 0,
      seconds: secondsAtMost(order),
      ...(order.resolution === undefined ? {} : { media: [order.resolution] }),
    };
  },
};

const itemTypes = { video: 'video_url', audio: 'audio_url' } as const;
const roleNames = {
  image: 'reference_image',
  first_frame: 'first_frame',
  last_frame: 'last_frame',
  video: 'reference_video',
  audio: 'reference_audio',
} as const;

function itemOf(reference: Reference): JsonObject {
  const { role } = reference;
  if (role === 'mask') throw unsupported('The model does not take a mask.', reference.field);
  const type = role === 'video' || role === 'audio' ? itemTypes[role] : 'image_url';
  return { type, [type]: { url: addressOf(reference) }, role: roleNames[role] };
}

function doneWith(json: JsonObject, order: Order): Step {
  const content = objectOf(json['content']);
  const url = textOf(content?.['video_url']);
  // The task has run: a later poll may return the video.
  if (url === undefined) throw notAnAnswer('a finished task without a video', false);
  const lastFrame = textOf(content?.['last_frame_url']);
  const video: MadeFile = { url, mediaType: 'video/mp4' };
  const files = lastFrame === undefined ? [video] : [video, { url: lastFrame, mediaType: 'image/png' }];
  const counted = readCount(objectOf(json['usage'])?.['completion_tokens']);
  const second = readCount(json['duration']);
  const usage: Usage = { output: counted ?? tokensAtMost(order), second: second ?? secondsAtMost(order) };
  const media = mediaOf(textOf(json['resolution'])?.toLowerCase() ?? order.resolution);
  return { state: 'done', files, made: { usage, estimated: counted === undefined || second === undefined, media } };
}

function mediaOf(resolution: string | undefined): string[] {
  return resolution === undefined ? [] : [resolution];
}
