/** Videos in the protocol of xAI: 202 until they are done, priced by the second. Pure. */
import { table } from '../../../core/contract/table.ts';
import { badRequest } from '../fault.ts';
import { isObject, type JsonObject, textOf, wholeOf } from '../json.ts';
import { parseDirectives } from '../script/directives.ts';
import type { VideoDialect, VideoParams } from './dialect.ts';
import { chosen, required, sizeOf } from './members.ts';
import { xaiFault } from './xai-images.ts';

const ratios = ['1:1', '16:9', '9:16', '4:3', '3:4', '3:2', '2:3'];
const pixels: Readonly<Record<string, number>> = table({ '480p': 409_920, '720p': 921_600, '1080p': 2_073_600 });
const usualSeconds = 6;
const mostSeconds = 15;
/** Ten-thousand-millionths of a dollar for a second of 480p. */
const ticksPerSecond = 500_000_000;

export const xaiVideos: VideoDialect = {
  idPrefix: '',

  decode(body): VideoParams {
    const { text: prompt, directives } = parseDirectives(required(body, 'prompt'));
    const ratio = chosen(body, 'aspect_ratio', '16:9', ratios);
    const resolution = chosen(body, 'resolution', '480p', Object.keys(pixels));
    const { image } = body;
    if (image !== undefined && (!isObject(image) || textOf(image['url']) === undefined))
      throw badRequest('The image needs an url.', 'image');
    const size = sizeOf(ratio, pixels[resolution]!);
    return { model: required(body, 'model'), prompt, size, resolution, ratio, seconds: secondsIn(body), directives };
  },

  usage: ({ seconds }) => ({ second: seconds }),

  created: (id) => ({ request_id: id }),

  encodeTask({ params }, state, { url, share }) {
    const end = { model: params.model, usage: { cost_in_usd_ticks: params.seconds * ticksPerSecond }, progress: 100 };
    switch (state) {
      case 'succeeded':
        return {
          status: 200,
          body: { status: 'done', video: { url, duration: params.seconds, respect_moderation: true }, ...end },
        };
      case 'moderated':
        return {
          status: 200,
          body: { status: 'done', video: { url: '', duration: 0, respect_moderation: false }, model: params.model },
        };
      case 'failed':
        return {
          status: 200,
          body: {
            status: 'failed',
            error: { code: 'internal_error', message: 'Generation failed.' },
            model: params.model,
          },
        };
      case 'expired':
      case 'cancelled':
        return { status: 200, body: { status: 'expired', model: params.model } };
      default:
        return { status: 202, body: { status: 'pending', progress: Math.floor(share * 99) } };
    }
  },

  fault: xaiFault,
};

function secondsIn({ duration }: JsonObject): number {
  if (duration === undefined || duration === null) return usualSeconds;
  const seconds = wholeOf(duration, 1) ?? mostSeconds + 1;
  if (seconds > mostSeconds) throw badRequest(`duration must be from 1 to ${mostSeconds}`, 'duration');
  return seconds;
}
