/** The duration of an audio file, from the headers of its container, which are read where they stand. */
import { AudioFrames } from './frames.ts';

/** No file that is taken is longer; a larger number in a header is not believed. */
const mostSeconds = 7 * 86_400;
/** How far into a file its headers are looked for, where they have no fixed place. */
const nearBytes = 1 << 20;
/** How many such spans, from the end on. */
const mostSpans = 16;
const mostBoxes = 10_000;
const spanBytes = 65_536;
/** Header and content of an Ogg page, and the header of the one behind it. */
const mostPageBytes = 2 * 65_536;

/** A file that is read in spans. */
export interface ByteSource {
  readonly length: number;
  /** Fewer bytes at the end of the file. */
  read(first: number, length: number): Promise<Buffer>;
}

export function sourceOf(bytes: Uint8Array): ByteSource {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { length: file.length, read: async (first, length) => file.subarray(first, first + length) };
}

/** Seconds of a WAV, MP3, AAC, FLAC, Ogg, MP4 or WebM file; undefined: it is none of them, or does not say. */
export async function audioSeconds(file: ByteSource): Promise<number | undefined> {
  let seconds: number | undefined;
  try {
    seconds = await readerOf(await file.read(0, 8))(file);
  } catch (error) {
    // A header that points beyond the file.
    if (!(error instanceof RangeError)) throw error;
  }
  return seconds !== undefined && seconds > 0 && seconds <= mostSeconds ? seconds : undefined;
}

function readerOf(start: Buffer): (file: ByteSource) => Promise<number | undefined> {
  const magic = start.toString('latin1', 0, 4);
  if (magic === 'RIFF') return wavSeconds;
  if (magic === 'fLaC') return flacSeconds;
  if (magic === 'OggS') return oggSeconds;
  if (start.toString('latin1', 4, 8) === 'ftyp') return mp4Seconds;
  if (start.length >= 4 && start.readUInt32BE(0) === 0x1a45dfa3) return webmSeconds;
  return framedSeconds;
}

async function framedSeconds(file: ByteSource): Promise<number> {
  const frames = new AudioFrames();
  for (let at = 0; at < file.length; at += spanBytes) frames.feed(await file.read(at, spanBytes));
  return frames.seconds;
}

/** RIFF: a sequence of chunks, each with a name and a length. Streamed files state a length that is too large. */
async function wavSeconds(file: ByteSource): Promise<number | undefined> {
  let bytesPerSecond: number | undefined;
  for (let at = 12, count = 0; at + 8 <= file.length && count < mostBoxes; count++) {
    const chunk = await file.read(at, 20);
    const [name, length] = [chunk.toString('latin1', 0, 4), chunk.readUInt32LE(4)];
    if (name === 'fmt ') bytesPerSecond = chunk.readUInt32LE(16);
    if (name === 'data' && bytesPerSecond !== undefined && bytesPerSecond > 0)
      return Math.min(length, file.length - at - 8) / bytesPerSecond;
    at += 8 + length + (length & 1);
  }
  return undefined;
}

/** STREAMINFO comes first: 20 bits of sample rate, 36 of samples. */
async function flacSeconds(file: ByteSource): Promise<number | undefined> {
  const head = await file.read(0, 26);
  const rate = (head.readUInt32BE(18) >>> 12) & 0xfffff;
  const samples = (head[21]! & 0xf) * 2 ** 32 + head.readUInt32BE(22);
  return rate === 0 ? undefined : samples / rate;
}

/** The last Ogg page has the number of samples: of 48 kHz for Opus, of the rate in the first page for Vorbis. */
async function oggSeconds(file: ByteSource): Promise<number | undefined> {
  const tail = await tailOf(file, mostPageBytes);
  const last = tail.length < 14 ? -1 : tail.lastIndexOf('OggS', tail.length - 14, 'latin1');
  const head = await file.read(0, 256);
  const vorbis = head.indexOf('\x01vorbis', 0, 'latin1');
  const rate = vorbis === -1 ? 48_000 : head.readUInt32LE(vorbis + 12);
  if (last === -1 || rate === 0 || (vorbis === -1 && !head.includes('OpusHead'))) return undefined;
  return Number(tail.readBigUInt64LE(last + 6)) / rate;
}

function tailOf(file: ByteSource, bytes: number): Promise<Buffer> {
  return file.read(Math.max(0, file.length - bytes), bytes);
}

/** moov/mvhd: a time scale, and the duration in it. */
async function mp4Seconds(file: ByteSource): Promise<number | undefined> {
  const moov = await boxIn(file, 'moov', 0, file.length);
  const mvhd = moov && (await boxIn(file, 'mvhd', moov.start, moov.end));
  if (mvhd === undefined) return undefined;
  const head = await file.read(mvhd.start, 32);
  const isLong = head[0] === 1;
  const scale = head.readUInt32BE(isLong ? 20 : 12);
  const duration = isLong ? Number(head.readBigUInt64BE(24)) : head.readUInt32BE(16);
  return scale === 0 ? undefined : duration / scale;
}

async function boxIn(
  file: ByteSource,
  name: string,
  from: number,
  until: number,
): Promise<{ start: number; end: number } | undefined> {
  for (let at = from, count = 0; at + 8 <= until && count < mostBoxes; count++) {
    const head = await file.read(at, 16);
    const short = head.readUInt32BE(0);
    const isLong = short === 1;
    const length = isLong ? Number(head.readBigUInt64BE(8)) : short === 0 ? until - at : short;
    const start = at + (isLong ? 16 : 8);
    if (length < start - at) return undefined;
    if (head.toString('latin1', 4, 8) === name) return { start, end: Math.min(at + length, until) };
    at += length;
  }
  return undefined;
}

const webm = { info: '1549a966', scale: '2ad7b1', duration: '4489', cluster: '1f43b675', time: 'e7' };

/** Segment information names the duration; recordings of browsers lack it, and their last cluster states when it begins. */
async function webmSeconds(file: ByteSource): Promise<number | undefined> {
  const head = await file.read(0, nearBytes);
  const info = after(head, webm.info);
  if (info === undefined) return undefined;
  const near = head.subarray(info, info + 4_096);
  const scaleAt = after(near, webm.scale);
  const nanoseconds = scaleAt === undefined ? 1_000_000 : unsignedAt(near, scaleAt);
  const durationAt = after(near, webm.duration);
  const length = durationAt === undefined ? 0 : near[durationAt]! & 0x7f;
  if (durationAt !== undefined && length === 8) return (near.readDoubleBE(durationAt + 1) * nanoseconds) / 1e9;
  if (durationAt !== undefined && length === 4) return (near.readFloatBE(durationAt + 1) * nanoseconds) / 1e9;
  const cluster = await lastCluster(file);
  const timeAt = cluster && after(cluster, webm.time);
  return timeAt === undefined ? undefined : (unsignedAt(cluster!, timeAt) * nanoseconds) / 1e9;
}

/** Looked for from the end on; browsers write one every few seconds. */
async function lastCluster(file: ByteSource): Promise<Buffer | undefined> {
  const id = Buffer.from(webm.cluster, 'hex');
  for (let count = 0, end = file.length; count < mostSpans && end > 0; count++) {
    const first = Math.max(0, end - nearBytes);
    // A header that is cut at the end of a span is whole in this one.
    const span = await file.read(first, end - first + 64);
    const last = span.lastIndexOf(id);
    if (last !== -1) return span.subarray(last + 4, last + 64);
    end = first;
  }
  return undefined;
}

/** The offset behind an element's id. */
function after(bytes: Buffer, id: string): number | undefined {
  const at = bytes.indexOf(id, 0, 'hex');
  return at === -1 ? undefined : at + id.length / 2;
}

/** A number of one to six bytes behind its length. */
function unsignedAt(bytes: Buffer, at: number): number {
  return bytes.readUIntBE(at + 1, Math.min(6, Math.max(1, bytes[at]! & 0x7f)));
}
