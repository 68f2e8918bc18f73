/** Videos in the protocol of Ark: tasks that can be cancelled while queued, priced by tokens. Pure. */
import { table } from '../../../core/contract/table.ts';
import { badRequest } from '../fault.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf, wholeOf } from '../json.ts';
import { parseDirectives } from '../script/directives.ts';
import { arkFault } from './ark-images.ts';
import type { VideoDialect, VideoParams } from './dialect.ts';
import { chosen, required } from './members.ts';
import { framesPerSecond } from './mp4.ts';

/** Supported sizes, by resolution and aspect ratio. */
const sizes: Readonly<Record<string, Readonly<Record<string, readonly [number, number]>>>> = table({
  '480p': { '16:9': [864, 480], '4:3': [736, 544], '1:1': [640, 640], '21:9': [960, 416] },
  '720p': { '16:9': [1248, 704], '4:3': [1120, 832], '1:1': [960, 960], '21:9': [1504, 640] },
  '1080p': { '16:9': [1920, 1088], '4:3': [1664, 1248], '1:1': [1440, 1440], '21:9': [2176, 928] },
});
const turned: Readonly<Record<string, string>> = table({ '9:16': '16:9', '3:4': '4:3' });
const usualSeconds = 5;
const mostSeconds = 60;
const ratios = ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9', 'adaptive'];

export const arkVideos: VideoDialect = {
  idPrefix: 'cgt-',

  decode(body): VideoParams {
    const items = listOf(body['content']).filter(isObject);
    if (items.length === 0) throw badRequest('The parameter `content` is missing.', 'content', 'MissingParameter');
    const text = items.map((item) => textOf(item['text']) ?? '').join('');
    const { text: prompt, directives } = parseDirectives(text);
    const requested = chosen(body, 'ratio', '16:9', ratios);
    const ratio = requested === 'adaptive' ? '16:9' : requested;
    const resolution = chosen(body, 'resolution', '720p', Object.keys(sizes));
    const [width, height] = sizes[resolution]![turned[ratio] ?? ratio]!;
    const size = turned[ratio] === undefined ? { width, height } : { width: height, height: width };
    return { model: required(body, 'model'), prompt, size, resolution, ratio, seconds: secondsIn(body), directives };
  },

  usage: (params) => ({ output: tokensFor(params), second: params.seconds }),

  created: (id) => ({ id }),

  encodeTask(task, state, { url, now }) {
    const { params } = task;
    const failed = state === 'failed' || state === 'moderated';
    const status = failed ? 'failed' : state;
    const code = state === 'moderated' ? 'OutputVideoSensitiveContentDetected' : 'InternalServiceError';
    const [id, seconds] = [task.id, Math.floor(task.createdAtMs / 1_000)];
    return {
      status: 200,
      body: {
        id,
        model: params.model,
        status,
        error: failed ? { code, message: `The task failed. Request id: ${id}` } : null,
        ...(state === 'succeeded' ? { content: { video_url: url }, usage: usageWords(params) } : {}),
        created_at: seconds,
        updated_at: Math.max(seconds, Math.floor(now / 1_000)),
        resolution: params.resolution,
        ratio: params.ratio,
        duration: params.seconds,
        framespersecond: framesPerSecond,
        service_tier: 'default',
      },
    };
  },

  fault: arkFault,
};

function usageWords(params: VideoParams): object {
  return { completion_tokens: tokensFor(params), total_tokens: tokensFor(params) };
}

function tokensFor({ size, seconds }: VideoParams): number {
  return Math.floor((size.width * size.height * (framesPerSecond * seconds + 1)) / 1024);
}

/** -1: the model decides. */
function secondsIn(body: JsonObject): number {
  const { duration } = objectOf(body);
  if (duration === undefined || duration === null || duration === -1) return usualSeconds;
  const seconds = wholeOf(duration, 1) ?? mostSeconds + 1;
  if (seconds > mostSeconds) throw badRequest('The parameter `duration` is not valid.', 'duration', 'InvalidParameter');
  return seconds;
}
