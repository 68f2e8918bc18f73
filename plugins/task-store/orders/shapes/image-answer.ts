/** The official answer to an image request that waits: `{created, data: [{url} or {b64_json}], usage}`. Pure. */
import type { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Usage } from '../../../common/domain/usage.ts';
import { envelope } from '../../../common/kit/error-envelope.ts';
import { formatFrame } from '../../../common/kit/sse.ts';
import type { Shape, Task } from '../../contract.ts';
import { secondsOf } from './states.ts';

/** The answer for a task that succeeded. Any other end is an error, which the endpoint renders. */
export const imageAnswer: Pick<Shape, 'render'> = { render: renderImages };

function renderImages(task: Task): JsonObject {
  const usage = task.made === undefined ? undefined : renderUsage(task.made.usage);
  const format = formatOf(task);
  return {
    created: secondsOf(task.completedAtMs ?? task.updatedAtMs),
    data: task.results.map(({ url, base64 }) => (base64 === undefined ? { url } : { b64_json: base64 })),
    ...(format === undefined ? {} : { output_format: format }),
    ...geometryOf(task),
    ...(task.made?.background === undefined ? {} : { background: task.made.background }),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** The format that all images have in common, if any. */
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

/** Totals with their details; undefined for models priced per image. */
function renderUsage(usage: Usage): JsonObject | undefined {
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

/** The completed event of the official API; the task has one result, with its bytes. */
export function completedFrame(task: Task): string {
  const { created, data, ...rest } = imageAnswer.render(task);
  const type = task.order.references.length > 0 ? 'image_edit.completed' : 'image_generation.completed';
  const [image] = data as object[];
  return formatFrame(JSON.stringify({ type, created_at: created, ...image, ...rest }), type);
}

/** Official clients throw this event. `shape`: the members of the gateway's own error shape, if configured. */
export function errorFrame(error: GatewayError, shape: Readonly<Record<string, string>> = {}): string {
  const body = { type: 'error', ...shape, error: { ...envelope(error).error, ...shape } };
  return formatFrame(JSON.stringify(body), 'error');
}
