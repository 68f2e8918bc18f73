/** `xai-videos`: `/videos/generations` begins a task, `/videos/{id}` tells of it; 202, with or without a body, is not yet. Pure. */
import { type JsonObject, objectOf, textOf } from '../../../core/json.ts';
import { notAnAnswer } from '../../../core/refusals.ts';
import type { Adapter, Bounds, Order, Step, VendorAnswer, VendorRequest } from '../contract.ts';
import { ratioAmong, resolutionAmong } from './geometry.ts';
import { failed, failedTask, readObject, unreadable } from './outcome.ts';
import { addressOf } from './references.ts';
import { fieldOf, leftOut, pickExtras, unsupported } from './refuse.ts';

const ratios = ['1:1', '16:9', '9:16', '4:3', '3:4', '3:2', '2:3'];
/** Longer wishes are shortened to it. */
const mostSeconds = 15;
const mostReferences = 7;
/** Said, so that it is known what is charged. */
const usualResolution = '480p';
const extrasTaken = new Set(['user']);

export const xaiVideos: Adapter = {
  protocol: 'xai-videos',
  kind: 'video',
  needsBytes: false,
  mostPerCall: 1,

  create(order, target): VendorRequest {
    const needsImage = target.traits.needs_image === true;
    if (needsImage) checkTextAndImage(order);
    const { extras, dropped } = pickExtras(order, extrasTaken);
    const ratio = isLeftToImage(order, needsImage) ? undefined : ratioAmong(order, ratios);
    const resolution = resolutionAmong(order, ['480p', '720p', '1080p'], target.traits) ?? usualResolution;
    const body: JsonObject = {
      model: target.model,
      prompt: order.prompt,
      ...(order.seconds === undefined ? {} : { duration: Math.min(order.seconds, mostSeconds) }),
      ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
      resolution,
      ...shown(order, needsImage),
      ...(order.generateAudio === undefined || needsImage ? {} : { generate_audio: order.generateAudio }),
      ...extras,
    };
    return { method: 'POST', path: '/videos/generations', body, dropped: [...dropped, ...unread(order, needsImage)] };
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

/** A shape that the vendor has no name for: where a picture is always shown, the video keeps the picture's. */
function isLeftToImage({ ratio }: Order, needsImage: boolean): boolean {
  return needsImage && ratio !== undefined && !ratios.includes(ratio);
}

/** One text and one image; what else may be shown is ignored by such models. */
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

/** One picture is where the video begins; several are shown to take things from. */
function shown(order: Order, onlyImage: boolean): JsonObject {
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

/** Ignored by the interface's word are audio, watermarks, and references that are no images. */
function unread(order: Order, onlyImage: boolean): string[] {
  const isLong = order.seconds !== undefined && order.seconds > mostSeconds;
  const names = [
    ...(isLong ? [fieldOf(order, 'seconds')] : []),
    ...(isLeftToImage(order, onlyImage) ? [fieldOf(order, 'ratio')] : []),
    ...leftOut(order, 'watermark', 'quality'),
  ];
  if (!onlyImage) return names;
  names.push(...leftOut(order, 'generateAudio'));
  return [...names, ...order.references.filter((reference) => !isPicture(reference)).map(({ field }) => field)];
}

/** Also every state that is not known. */
function runningAs(answer: VendorAnswer, vendorId: string): Step {
  const progress = objectOf(answer.json)?.['progress'];
  const told =
    typeof progress === 'number' && progress >= 0 && progress <= 100 ? { progress: Math.floor(progress) } : {};
  return { state: 'running', vendorId, ...told };
}

function doneWith(video: JsonObject | undefined, order: Order): Step {
  if (video?.['respect_moderation'] === false) return failed('content_policy');
  const url = textOf(video?.['url']);
  // It has run: asking again may tell more.
  if (url === undefined) throw notAnAnswer('a finished task without a video', false);
  const told = video?.['duration'];
  const known = typeof told === 'number' && told > 0 && Number.isFinite(told);
  const second = Math.min(known ? Math.ceil(told) : xaiVideos.bounds(order).seconds, xaiVideos.bounds(order).seconds);
  return {
    state: 'done',
    files: [{ url, mediaType: 'video/mp4' }],
    made: { usage: { second }, estimated: !known, media: mediaOf(order) },
  };
}

function mediaOf({ resolution }: Order): string[] {
  return [resolution ?? usualResolution];
}
