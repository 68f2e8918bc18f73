/** Upper bound of an Ark video's cost: tokens = width × height × (24 × seconds + 1) / 1024. Pure. */
import { table } from '../../../core/contract/table.ts';
import { readCount } from '../../common/domain/usage.ts';
import type { Order } from '../../common/media/adapters.ts';

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
export function secondsAtMost(order: Order): number {
  const { prompt, seconds } = order;
  const frames = Math.max(optionOf(prompt, /--(?:frames)\s+(\d{1,5})/), readCount(order.extra['frames']) ?? 0);
  const legacy = optionOf(prompt, /--(?:dur|duration)\s+(\d{1,4})/);
  return Math.max(seconds ?? longestChoice, legacy, Math.ceil(frames / framesPerSecond));
}

export function tokensAtMost(order: Order): number {
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
