/** What the form of a kind offers, from the limits that the catalogue has of a model. Pure. */
import type { ModelRow } from '../../../../api/types.ts';

type Limits = ModelRow['limits'];

/** What every gateway takes at most where the vendor documents nothing. */
const mostImages = 10;
const mostSeconds = 60;
const usualSeconds = 5;

const ratios = ['1:1', '4:3', '3:4', '3:2', '2:3', '16:9', '9:16'];
/** Sizes that people know, smallest first. */
const pixels = ['1024x1024', '1536x1024', '1024x1536', '2048x2048', '2048x1152', '1152x2048', '3840x2160', '2160x3840'];

const edgesOf = (size: string) => size.split('x').map(Number) as [number, number];

/** Ratios beside a resolution, or sizes in pixels where the largest is known alone. */
export function imageSizes({ resolutions, size }: Limits): readonly string[] {
  if (resolutions !== undefined || size === undefined) return ratios;
  const [width, height] = edgesOf(size);
  const fitting = pixels.filter((one) => {
    const edges = edgesOf(one);
    return Math.max(...edges) <= Math.max(width, height) && edges[0] * edges[1] <= width * height;
  });
  return fitting.length === 0 ? [size] : fitting;
}

export const imagesAtMost = ({ images }: Limits): number => Math.min(images ?? mostImages, mostImages);

const usualResolutions = ['480p', '720p', '1080p'];
const shapes = [
  [16, 9],
  [9, 16],
  [1, 1],
] as const;

interface VideoSize {
  /** As it is sent. */
  readonly pixels: string;
  readonly resolution: string;
  readonly ratio: string;
}

/** Every resolution of the model in every shape; the shorter edge is the resolution. */
export function videoSizes({ resolutions = usualResolutions }: Limits): readonly VideoSize[] {
  return resolutions
    .filter((resolution) => /^\d+p$/.test(resolution))
    .flatMap((resolution) => {
      const edge = Number.parseInt(resolution, 10);
      return shapes.map(([wide, high]) => {
        const long = 2 * Math.round((edge * Math.max(wide, high)) / Math.min(wide, high) / 2);
        const pixels = wide >= high ? `${long}x${edge}` : `${edge}x${long}`;
        return { pixels, resolution, ratio: `${wide}:${high}` };
      });
    });
}

/** Seconds of a video: the longest, and those that stand there at first. */
export function secondsOf({ seconds = mostSeconds }: Limits): { readonly most: number; readonly usual: number } {
  return { most: seconds, usual: Math.min(usualSeconds, seconds) };
}

const voices = ['alloy', 'echo', 'nova'];
export const voicesOf = (limits: Limits): readonly string[] => limits.voices ?? voices;

/** Formats that browsers play; raw PCM is none. */
export const soundFormats = ({ formats = ['mp3', 'wav'] }: Limits): readonly string[] =>
  formats.filter((format) => format !== 'pcm');

/** With segments where the model has them. */
export const transcriptFormats = ({ formats = ['json'] }: Limits): readonly string[] =>
  formats.toSorted((left, right) => Number(right === 'verbose_json') - Number(left === 'verbose_json'));

/** The chosen one, or the first where it is none of them: another model has others. */
export const oneOf = (all: readonly string[], chosen: string | undefined): string =>
  chosen !== undefined && all.includes(chosen) ? chosen : (all[0] ?? '');
