/** Real audio files of a given length: WAV and PCM with a tone, MP3 with silence. Pure. */

const pcmRate = 24_000;
const toneHertz = 220;
const loudness = 6_000;

/** Eleven waves of the tone: after them its samples are the same again. */
const waves = Buffer.alloc((pcmRate / 20) * 2);
for (let at = 0; at < waves.length; at += 2)
  waves.writeInt16LE(Math.round(Math.sin((Math.PI * toneHertz * at) / pcmRate) * loudness), at);

/** 24 kHz, 16 bits, one channel. */
export function pcmTone(seconds: number): Buffer {
  return Buffer.alloc(Math.round(seconds * pcmRate) * 2, waves);
}

export function wavTone(seconds: number): Buffer {
  const data = pcmTone(seconds);
  const head = Buffer.alloc(44);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(36 + data.length, 4);
  head.write('WAVEfmt ', 8, 'latin1');
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(pcmRate, 24);
  head.writeUInt32LE(pcmRate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(data.length, 40);
  return Buffer.concat([head, data]);
}

const mp3FrameBytes = 208;
const mp3FrameSeconds = 1_152 / 44_100;

/** MPEG-1 layer III, 64 kbit/s, 44.1 kHz, one channel: a header, then side information that says that nothing follows. */
export function mp3Silence(seconds: number): Buffer {
  const frame = Buffer.alloc(mp3FrameBytes);
  frame.writeUInt32BE(0xfffb50c4, 0);
  return Buffer.concat(Array.from({ length: Math.max(1, Math.round(seconds / mp3FrameSeconds)) }, () => frame));
}
