/** Names of media types: aliases, endings, kinds, and which of two is believed. Pure. */
import { table } from '../../../core/contract/table.ts';

/** Other names of media types, and bare formats as some protocols word them. */
const aliases: Readonly<Record<string, string>> = table({
  'image/jpg': 'image/jpeg',
  'image/pjpeg': 'image/jpeg',
  'image/x-png': 'image/png',
  'audio/mp3': 'audio/mpeg',
  'audio/x-mp3': 'audio/mpeg',
  'audio/mpeg3': 'audio/mpeg',
  'audio/x-wav': 'audio/wav',
  'audio/wave': 'audio/wav',
  'audio/vnd.wave': 'audio/wav',
  'audio/x-flac': 'audio/flac',
  'audio/m4a': 'audio/mp4',
  'audio/x-m4a': 'audio/mp4',
  'application/x-pdf': 'application/pdf',
});

const typesByExtension: Readonly<Record<string, string>> = table({
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  bmp: 'image/bmp',
  heic: 'image/heic',
  heif: 'image/heif',
  avif: 'image/avif',
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  json: 'application/json',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  flac: 'audio/flac',
  ogg: 'audio/ogg',
  opus: 'audio/opus',
  aac: 'audio/aac',
  m4a: 'audio/mp4',
  mp4: 'video/mp4',
  mov: 'video/quicktime',
  webm: 'video/webm',
  mpeg: 'video/mpeg',
  pcm16: 'audio/pcm',
});

/** Lower-case, without parameters, under its usual name; undefined for other texts. */
export function plainMediaType(declared: string | undefined): string | undefined {
  const [bare = ''] = (declared ?? '')
    .toLowerCase()
    .split(';', 1)
    .map((text) => text.trim());
  if (!/^[\w.+-]+\/[\w.+-]+$/.test(bare)) return undefined;
  return aliases[bare] ?? bare;
}

/** The type of a format (`mp3`) or of a file name's or URL's ending, without the query; undefined: not known. */
export function mediaTypeOfName(name: string): string | undefined {
  const path = name.split(/[?#]/, 1)[0]!;
  const ending = path.slice(Math.max(path.lastIndexOf('.'), path.lastIndexOf('/')) + 1).toLowerCase();
  return Object.hasOwn(typesByExtension, ending) ? typesByExtension[ending] : undefined;
}

/** Content beats declaration, except that a container which may hold sound alone is what it is called. */
export function truerType(sniffed: string | undefined, declaredType: string | undefined): string {
  const declared = plainMediaType(declaredType);
  if (sniffed === undefined) return declared ?? 'application/octet-stream';
  const isContainer = sniffed === 'video/mp4' || sniffed === 'video/webm' || sniffed === 'audio/ogg';
  return isContainer && declared?.split('/')[1] === sniffed.split('/')[1] ? declared! : sniffed;
}

export type MediaKind = 'image' | 'audio' | 'video' | 'document';

export function kindOfMedia(mediaType: string): MediaKind {
  const family = mediaType.split('/', 1)[0];
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'document';
}

const extensions = new Map(Object.entries(typesByExtension).map(([ending, type]) => [type, ending]));
extensions.set('image/jpeg', 'jpg');
extensions.set('image/svg+xml', 'svg');

/** The ending of files of a type, without the dot; `bin` where none is known. */
export function extensionOf(mediaType: string): string {
  return extensions.get(mediaType) ?? 'bin';
}
