/** Counts the duration of MP3 and AAC (ADTS) by the headers of their frames, in any chunks. Pure. */

/** kbit/s by version (MPEG-1, else 2 and 2.5) and index, for layers III and I/II of MPEG-2. */
const layer3Rates = [
  [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
] as const;
const mpegSampleRates = [44_100, 48_000, 32_000] as const;
const adtsSampleRates = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
] as const;

const headerBytes = 10;

interface Frame {
  readonly bytes: number;
  readonly seconds: number;
}

/** Only the header of a frame is read; other bytes are skipped one by one. */
export class AudioFrames {
  /** Duration by all complete headers so far. */
  seconds = 0;
  #skip = 0;
  #rest: Buffer = Buffer.alloc(0);

  feed(chunk: Uint8Array): void {
    const fresh = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const bytes = this.#rest.length === 0 ? fresh : Buffer.concat([this.#rest, fresh]);
    let at = this.#skip;
    while (at + headerBytes <= bytes.length) {
      const frame = bytes[at] === 0xff ? frameAt(bytes, at) : undefined;
      if (frame !== undefined) {
        this.seconds += frame.seconds;
        at += frame.bytes;
      } else if (at === 0 && bytes.toString('latin1', 0, 3) === 'ID3') at += id3Bytes(bytes);
      else at = nextSync(bytes, at + 1);
    }
    this.#skip = Math.max(0, at - bytes.length);
    this.#rest = at >= bytes.length ? Buffer.alloc(0) : Buffer.from(bytes.subarray(at));
  }
}

function nextSync(bytes: Buffer, from: number): number {
  const found = bytes.indexOf(0xff, from);
  return found === -1 ? bytes.length : found;
}

/** The tag's own header, and its size in four bytes of seven bits. */
function id3Bytes(bytes: Buffer): number {
  return 10 + [6, 7, 8, 9].reduce((size, at) => size * 128 + (bytes[at]! & 0x7f), 0);
}

function frameAt(bytes: Buffer, at: number): Frame | undefined {
  const [second, third] = [bytes[at + 1]!, bytes[at + 2]!];
  if ((second & 0xf6) === 0xf0) return adtsFrame(bytes, at);
  // Layer III alone: others are not sent to these endpoints.
  if ((second & 0xe0) !== 0xe0 || ((second >> 1) & 3) !== 1) return undefined;
  const version = (second >> 3) & 3;
  const rate = layer3Rates[version === 3 ? 0 : 1][third >> 4];
  const base = mpegSampleRates[(third >> 2) & 3];
  if (version === 1 || rate === undefined || rate === 0 || base === undefined) return undefined;
  const sampleRate = version === 3 ? base : version === 2 ? base / 2 : base / 4;
  const samples = version === 3 ? 1_152 : 576;
  const length = Math.floor((samples * rate * 125) / sampleRate) + ((third >> 1) & 1);
  return { bytes: length, seconds: samples / sampleRate };
}

function adtsFrame(bytes: Buffer, at: number): Frame | undefined {
  const sampleRate = adtsSampleRates[(bytes[at + 2]! >> 2) & 0xf];
  const length = ((bytes[at + 3]! & 3) << 11) | (bytes[at + 4]! << 3) | (bytes[at + 5]! >> 5);
  if (sampleRate === undefined || length < 7) return undefined;
  return { bytes: length, seconds: (1_024 * ((bytes[at + 6]! & 3) + 1)) / sampleRate };
}
