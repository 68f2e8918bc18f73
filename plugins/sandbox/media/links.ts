/** URLs of generated media: each contains its parameters and expiry time, so nothing is stored. Pure. */

import { type Size, smaller } from './canvas.ts';
import { mp4Of } from './mp4.ts';
import { pngOf } from './png.ts';

/** As at the original vendors. */
const usualLifeMs = 86_400_000;
const imageEdge = 256;
const videoEdge = 96;
const longestSeconds = 60;

export interface Media {
  readonly bytes: Buffer;
  readonly type: string;
}

/** A small picture in the shape that was asked for. */
export function pictureOf(seed: string, size: Size): Media {
  return { bytes: pngOf(seed, smaller(size, imageEdge)), type: 'image/png' };
}

export function imageLink(origin: string, seed: string, size: Size, now: number, lifeMs = usualLifeMs): string {
  return `${origin}/files/${seed}-${size.width}x${size.height}.png?until=${now + lifeMs}`;
}

/** `seconds` is whole. */
export function videoLink(
  origin: string,
  seed: string,
  size: Size,
  seconds: number,
  now: number,
  lifeMs = usualLifeMs,
): string {
  return `${origin}/files/${seed}-${size.width}x${size.height}-${seconds}.mp4?until=${now + lifeMs}`;
}

const file = /^\/files\/([0-9a-f]{12})-([1-9]\d{0,4})x([1-9]\d{0,4})(?:-([1-9]\d?))?\.(png|mp4)$/;

/** undefined: not found; `expired`: no longer available. */
export function mediaAt(path: string, query: URLSearchParams, now: number): Media | 'expired' | undefined {
  const match = file.exec(path);
  if (match === null) return undefined;
  const [, seed, width, height, seconds, kind] = match;
  if (Number(query.get('until') ?? 0) <= now) return 'expired';
  const size = { width: Number(width), height: Number(height) };
  if (kind === 'png') return pictureOf(seed!, size);
  const length = Math.min(longestSeconds, Number(seconds ?? 1));
  return { bytes: mp4Of(seed!, smaller(size, videoEdge), length), type: 'video/mp4' };
}
