/**
 * `xai-videos`: `/videos/generations` starts a task, `/videos/{id}` returns it; a 202, with or without a body, means
 * pending. Pure.
 */
import { type JsonObject, objectOf, textOf } from '../../../core/json/json.ts';
import { notAnAnswer } from '../../common/kit/upstream-errors.ts';
import type { Bounds, MediaAdapter, Order, Step, VendorAnswer, VendorRequest } from '../../common/media/adapters.ts';
import { raisedResolution, ratioAmong, resolutionAmong } from '../../common/media/geometry.ts';
import { failed, failedTask, readObject, unreadable } from '../../common/media/outcome.ts';
import { addressOf } from '../../common/media/references.ts';
import { droppedMembers, fieldOf, pickExtras, unsupported } from '../../common/media/refuse.ts';

const ratios = ['1:1', '16:9', '9:16', '4:3', '3:4', '3:2', '2:3'];
/** Longer durations are shortened to this. */
const mostSeconds = 15;
const mostReferences = 7;
/** Sent explicitly, so that the charged resolution is known. */
const usualResolution = '480p';
const supportedExtras = new Set(['user']);

export const xaiVideos: MediaAdapter = {
  name: 'xai-videos',
  path: '/videos/generations',
  kind: 'video',
  needsBytes: false,
  mostPerCall: 1,

  create(order, target): VendorRequest {
    const needsImage = target.traits.needs_image === true;
    if (needsImage) checkTextAndImage(order);
    const { extras, dropped } = pickExtras(order, supportedExtras);
    const ratio = isLeftToImage(order, needsImage) ? undefined : ratioAmong(order, ratios);
    const resolution = resolutionAmong(order, ['480p', '720p', '1080p'], target.traits) ?? usualResolution;
    const body: JsonObject = {
      model: target.model,
      prompt: order.prompt,
      ...(order.seconds === undefined ? {} : { duration: Math.min(order.seconds, mostSeconds) }),
      ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
      resolution,
      ...imageMembers(order, needsImage),
      ...(order.generateAudio === undefined || needsImage ? {} : { generate_audio: order.generateAudio }),
      ...extras,
    };
    return {
      method: 'POST',
      path: '/videos/generations',
      body,
      dropped: [...dropped, ...unread(order, needsImage), ...raisedResolution(order, resolution)],
      ...clampedOf(order, needsImage),
    };
  },

  readCreated(answer): Step {
    const read = readObject(answer);
    if ('failed' in read) return read.failed;
    const vendorId = textOf(read.json['request_id']) ?? textOf(read.json['id']);
    if (vendorId === undefined) throw unreadable('the answer names no task');
    return { state: 'queued', vendorId };
  },

  tasks: {
    poll: (vendorId) => ({ method: 'GET', path: `/videos/${encodeURIComponent(vendorId)}` }),

    readPolled(answer, order, vendorId): Step {
      if (answer.status === 202) return runningAs(answer, vendorId);
      const read = readObject(answer);
      if ('failed' in read) return read.failed;
      const { json } = read;
      const video = objectOf(json['video']);
      const status = textOf(json['status']) ?? (video === undefined ? undefined : 'done');
      if (status === 'done') return doneWith(video, order);
      if (status === 'failed') return failedTask(objectOf(json['error']));
      if (status === 'expired') return failed('expired');
      return runningAs(answer, vendorId);
    },
  },

  bounds(order): Bounds {
    const seconds = Math.min(order.seconds ?? mostSeconds, mostSeconds);
    return { inputTokens: 0, outputTokens: 0, images: 0, seconds, media: mediaOf(order) };
  },
};

function clampedOf(order: Order, needsImage: boolean): Pick<VendorRequest, 'clamped'> {
  const clamped = {
    ...((order.seconds ?? 0) > mostSeconds ? { seconds: mostSeconds } : {}),
    ...(isLeftToImage(order, needsImage) ? { ratio: 'adaptive' } : {}),
  };
  return Object.keys(clamped).length === 0 ? {} : { clamped };
}

/** A shape without a name at the vendor: models that always need an image keep the image's shape. */
function isLeftToImage({ ratio }: Order, needsImage: boolean): boolean {
  return needsImage && ratio !== undefined && !ratios.includes(ratio);
}

/** One text and one image; such models ignore other references. */
function checkTextAndImage(order: Order): void {
  if (order.prompt === '') throw unsupported('The model needs a text.', fieldOf(order, 'prompt'));
  const images = order.references.filter(isPicture);
  if (images.length === 1) return;
  throw unsupported(
    'The model needs exactly one image beside the text.',
    images[1]?.field ?? fieldOf(order, 'references'),
  );
}

function isPicture({ role }: { readonly role: string }): boolean {
  return role === 'image' || role === 'first_frame';
}

/** One image is the first frame; several are references. */
function imageMembers(order: Order, onlyImage: boolean): JsonObject {
  const of = (...roles: string[]) => order.references.filter(({ role }) => roles.includes(role)).map(urlOf);
  const pictures = of('image', 'first_frame');
  if (onlyImage) return { image: pictures[0] };
  if (pictures.length > mostReferences)
    throw unsupported(`The model takes at most ${mostReferences} images.`, fieldOf(order, 'references'));
  const lastFrame = of('last_frame')[0];
  const sounds = of('audio');
  const clip = order.references.find(({ role }) => role === 'video');
  if (clip !== undefined) throw unsupported('The model does not take videos.', clip.field);
  return {
    ...(pictures.length === 1 ? { image: pictures[0] } : {}),
    ...(pictures.length > 1 ? { reference_images: pictures } : {}),
    ...(lastFrame === undefined ? {} : { last_frame: lastFrame }),
    ...(sounds.length === 0 ? {} : { reference_audios: sounds }),
  };
}

function urlOf(reference: Order['references'][number]): JsonObject {
  return { url: addressOf(reference) };
}

/** Per its documentation the vendor ignores audio, watermarks and references that are no images. */
function unread(order: Order, onlyImage: boolean): string[] {
  const isLong = order.seconds !== undefined && order.seconds > mostSeconds;
  const names = [
    ...(isLong ? [fieldOf(order, 'seconds')] : []),
    ...(isLeftToImage(order, onlyImage) ? [fieldOf(order, 'ratio')] : []),
    ...droppedMembers(order, 'watermark', 'quality'),
  ];
  if (!onlyImage) return names;
  names.push(...droppedMembers(order, 'generateAudio'));
  return [...names, ...order.references.filter((reference) => !isPicture(reference)).map(({ field }) => field)];
}

/** Unknown states count as running. */
function runningAs(answer: VendorAnswer, vendorId: string): Step {
  const progress = objectOf(answer.json)?.['progress'];
  const reported =
    typeof progress === 'number' && progress >= 0 && progress <= 100 ? { progress: Math.floor(progress) } : {};
  return { state: 'running', vendorId, ...reported };
}

function doneWith(video: JsonObject | undefined, order: Order): Step {
  if (video?.['respect_moderation'] === false) return failed('content_policy');
  const url = textOf(video?.['url']);
  // The task has run: a later poll may return the video.
  if (url === undefined) throw notAnAnswer('a finished task without a video', false);
  const reported = video?.['duration'];
  const isReported = typeof reported === 'number' && reported > 0 && Number.isFinite(reported);
  const second = Math.min(
    isReported ? Math.ceil(reported) : xaiVideos.bounds(order).seconds,
    xaiVideos.bounds(order).seconds,
  );
  return {
    state: 'done',
    files: [{ url, mediaType: 'video/mp4' }],
    made: { usage: { second }, estimated: !isReported, media: mediaOf(order) },
  };
}

function mediaOf({ resolution }: Order): string[] {
  return [resolution ?? usualResolution];
}
