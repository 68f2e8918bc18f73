/** The duration of an audio file, from the headers of its container. Reads no samples and never beyond the file. Pure. */
import { AudioFrames } from './frames.ts';

/** No file that is taken is longer; a larger number in a header is not believed. */
const mostSeconds = 7 * 86_400;
/** How far into a file its headers are looked for, where they have no fixed place. */
const nearBytes = 1 << 20;
const mostBoxes = 10_000;

/** Seconds of a WAV, MP3, AAC, FLAC, Ogg, MP4 or WebM file; undefined: it is none of them, or does not say. */
export function audioSeconds(bytes: Uint8Array): number | undefined {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let seconds: number | undefined;
  try {
    seconds = readerOf(file)?.(file);
  } catch (error) {
    // A header that points beyond the file.
    if (!(error instanceof RangeError)) throw error;
  }
  return seconds !== undefined && seconds > 0 && seconds <= mostSeconds ? seconds : undefined;
}

function readerOf(file: Buffer): ((file: Buffer) => number | undefined) | undefined {
  const magic = file.toString('latin1', 0, 4);
  if (magic === 'RIFF') return wavSeconds;
  if (magic === 'fLaC') return flacSeconds;
  if (magic === 'OggS') return oggSeconds;
  if (file.toString('latin1', 4, 8) === 'ftyp') return mp4Seconds;
  if (file.length >= 4 && file.readUInt32BE(0) === 0x1a45dfa3) return webmSeconds;
  return framedSeconds;
}

function framedSeconds(file: Buffer): number {
  const frames = new AudioFrames();
  frames.feed(file);
  return frames.seconds;
}

/** RIFF: a sequence of chunks, each with a name and a length. Streamed files state a length that is too large. */
function wavSeconds(file: Buffer): number | undefined {
  let bytesPerSecond: number | undefined;
  for (let at = 12, count = 0; at + 8 <= file.length && count < mostBoxes; count++) {
    const [name, length] = [file.toString('latin1', at, at + 4), file.readUInt32LE(at + 4)];
    if (name === 'fmt ') bytesPerSecond = file.readUInt32LE(at + 16);
    if (name === 'data' && bytesPerSecond !== undefined && bytesPerSecond > 0)
      return Math.min(length, file.length - at - 8) / bytesPerSecond;
    at += 8 + length + (length & 1);
  }
  return undefined;
}

/** STREAMINFO comes first: 20 bits of sample rate, 36 of samples. */
function flacSeconds(file: Buffer): number | undefined {
  const rate = (file.readUInt32BE(18) >>> 12) & 0xfffff;
  const samples = (file[21]! & 0xf) * 2 ** 32 + file.readUInt32BE(22);
  return rate === 0 ? undefined : samples / rate;
}

/** The last Ogg page has the number of samples: of 48 kHz for Opus, of the rate in the first page for Vorbis. */
function oggSeconds(file: Buffer): number | undefined {
  const last = file.lastIndexOf('OggS', file.length - 14, 'latin1');
  const head = file.subarray(0, 256);
  const vorbis = head.indexOf('\x01vorbis', 0, 'latin1');
  const rate = vorbis === -1 ? 48_000 : head.readUInt32LE(vorbis + 12);
  if (last === -1 || rate === 0 || (vorbis === -1 && !head.includes('OpusHead'))) return undefined;
  return Number(file.readBigUInt64LE(last + 6)) / rate;
}

/** moov/mvhd: a time scale, and the duration in it. */
function mp4Seconds(file: Buffer): number | undefined {
  const moov = boxIn(file, 'moov', 0, file.length);
  const mvhd = moov && boxIn(file, 'mvhd', moov.start, moov.end);
  if (mvhd === undefined) return undefined;
  const isLong = file[mvhd.start] === 1;
  const scale = file.readUInt32BE(mvhd.start + (isLong ? 20 : 12));
  const duration = isLong ? Number(file.readBigUInt64BE(mvhd.start + 24)) : file.readUInt32BE(mvhd.start + 16);
  return scale === 0 ? undefined : duration / scale;
}

function boxIn(file: Buffer, name: string, from: number, until: number): { start: number; end: number } | undefined {
  for (let at = from, count = 0; at + 8 <= until && count < mostBoxes; count++) {
    const short = file.readUInt32BE(at);
    const isLong = short === 1;
    const length = isLong ? Number(file.readBigUInt64BE(at + 8)) : short === 0 ? until - at : short;
    const start = at + (isLong ? 16 : 8);
    if (length < start - at) return undefined;
    if (file.toString('latin1', at + 4, at + 8) === name) return { start, end: Math.min(at + length, until) };
    at += length;
  }
  return undefined;
}

const webm = { info: '1549a966', scale: '2ad7b1', duration: '4489', cluster: '1f43b675', time: 'e7' };

/** Segment information names the duration; recordings of browsers lack it, and their last cluster states when it begins. */
function webmSeconds(file: Buffer): number | undefined {
  const info = after(file.subarray(0, nearBytes), webm.info);
  if (info === undefined) return undefined;
  const near = file.subarray(info, info + 4_096);
  const scaleAt = after(near, webm.scale);
  const nanoseconds = scaleAt === undefined ? 1_000_000 : unsignedAt(near, scaleAt);
  const durationAt = after(near, webm.duration);
  const length = durationAt === undefined ? 0 : near[durationAt]! & 0x7f;
  if (durationAt !== undefined && length === 8) return (near.readDoubleBE(durationAt + 1) * nanoseconds) / 1e9;
  if (durationAt !== undefined && length === 4) return (near.readFloatBE(durationAt + 1) * nanoseconds) / 1e9;
  const last = file.lastIndexOf(Buffer.from(webm.cluster, 'hex'));
  const cluster = last === -1 ? undefined : file.subarray(last + 4, last + 64);
  const timeAt = cluster && after(cluster, webm.time);
  return timeAt === undefined ? undefined : (unsignedAt(cluster!, timeAt) * nanoseconds) / 1e9;
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
