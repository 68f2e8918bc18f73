/** Reads usage by class from a realtime event: tokens of text, audio and images, cached or not, or seconds. Pure. */
import { isObject, objectOf } from '../../../core/json/json.ts';
import { readCount, type Usage } from '../../common/domain/usage.ts';
import { split } from '../../common/wire/counts.ts';

/** `response.usage` of `response.done`; undefined: it has no counts. */
export function responseUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const details = objectOf(value['input_token_details']) ?? {};
  const cached = objectOf(details['cached_tokens_details']) ?? {};
  const spoken = objectOf(value['output_token_details']) ?? {};
  const input = readCount(value['input_tokens']);
  const output = readCount(value['output_tokens']);
  if (input === undefined && output === undefined) return undefined;
  const cachedAudio = readCount(cached['audio_tokens']) ?? 0;
  const cachedImage = readCount(cached['image_tokens']) ?? 0;
  const cachedAll = readCount(details['cached_tokens']) ?? 0;
  const cachedText = Math.max(readCount(cached['text_tokens']) ?? 0, cachedAll - cachedAudio - cachedImage);
  return {
    ...split(input ?? 0, 'input', [
      ['input_audio', rest(details['audio_tokens'], cachedAudio)],
      ['input_image', rest(details['image_tokens'], cachedImage)],
      ['cache_read_audio', some(cachedAudio)],
      ['cache_read_image', some(cachedImage)],
      ['cache_read', some(cachedText)],
    ]),
    ...split(output ?? 0, 'output', [['output_audio', readCount(spoken['audio_tokens'])]]),
  };
}

/** `usage` of a transcription: tokens, or seconds rounded up. */
export function transcriptionUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const { seconds } = value;
  if (value['type'] === 'duration' || typeof seconds === 'number')
    return typeof seconds === 'number' && seconds >= 0 && seconds < 1e6 ? { audio: Math.ceil(seconds) } : undefined;
  const input = readCount(value['input_tokens']);
  if (input === undefined) return undefined;
  const details = objectOf(value['input_token_details']) ?? {};
  return {
    ...split(input, 'input', [['input_audio', readCount(details['audio_tokens'])]]),
    output: readCount(value['output_tokens']) ?? 0,
  };
}

/** Cached tokens are counted in their own class. */
function rest(count: unknown, cached: number): number | undefined {
  const all = readCount(count);
  return all === undefined ? undefined : Math.max(0, all - cached);
}

function some(count: number): number | undefined {
  return count === 0 ? undefined : count;
}
