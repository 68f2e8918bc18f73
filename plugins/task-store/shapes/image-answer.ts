/** The official answer of images that a client has waited for: `{created, data: [{url} or {b64_json}], usage}`. Pure. */
import type { JsonObject } from '../../../core/json.ts';
import type { Usage } from '../../../core/usage.ts';
import type { Shape, Task } from '../contract.ts';
import { readImageRequest } from './image-request.ts';
import { secondsOf } from './states.ts';

/** `told` is of a task that succeeded. What became of any other is an error, which the endpoint words. */
export const imageAnswer: Shape = { read: readImageRequest, submitted: told, told };

function told(task: Task): JsonObject {
  const usage = task.made === undefined ? undefined : usageWords(task.made.usage);
  const format = formatOf(task);
  return {
    created: secondsOf(task.completedAtMs ?? task.updatedAtMs),
    data: task.results.map(({ url, base64 }) => (base64 === undefined ? { url } : { b64_json: base64 })),
    ...(format === undefined ? {} : { output_format: format }),
    ...geometryOf(task),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** Of all images, when they have one in common. */
function formatOf({ results }: Task): string | undefined {
  const formats = new Set(results.map(({ mediaType }) => mediaType.replace('image/', '')));
  return formats.size === 1 ? [...formats][0] : undefined;
}

const qualities = new Set(['low', 'medium', 'high', 'xhigh', 'max']);

function geometryOf({ made }: Task): JsonObject {
  const size = made?.media.find((word) => /^\d+x\d+$/.test(word));
  const quality = made?.media.find((word) => qualities.has(word));
  return { ...(size === undefined ? {} : { size }), ...(quality === undefined ? {} : { quality }) };
}

/** Totals with their parts; undefined for what is sold by the image alone. */
function usageWords(usage: Usage): JsonObject | undefined {
  const of = (name: keyof Usage) => usage[name] ?? 0;
  const input = of('input') + of('cache_read') + of('input_image');
  const output = of('output') + of('reasoning') + of('output_image');
  if (input + output === 0) return undefined;
  return {
    input_tokens: input,
    input_tokens_details: {
      text_tokens: of('input') + of('cache_read'),
      image_tokens: of('input_image'),
      cached_tokens: of('cache_read'),
    },
    output_tokens: output,
    output_tokens_details: { image_tokens: of('output_image'), text_tokens: of('output') + of('reasoning') },
    total_tokens: input + output,
  };
}
