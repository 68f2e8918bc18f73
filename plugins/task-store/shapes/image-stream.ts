/** The events that the gateway itself words in the stream of an image: its end where the vendor streamed none, and errors. Pure. */
import { envelope } from '../../../core/error-envelope.ts';
import type { GatewayError } from '../../../core/errors.ts';
import { formatFrame } from '../../../core/sse.ts';
import type { Task } from '../contract.ts';
import { imageAnswer } from './image-answer.ts';

/** As the official API ends a stream; the task has one result, with its bytes. */
export function completedFrame(task: Task): string {
  const { created, data, ...rest } = imageAnswer.told(task);
  const type = task.order.references.length > 0 ? 'image_edit.completed' : 'image_generation.completed';
  const [image] = data as object[];
  return formatFrame(JSON.stringify({ type, created_at: created, ...image, ...rest }), type);
}

/** Official clients throw it. `shape`: the members of the gateway's own errors, where it has such. */
export function errorFrame(error: GatewayError, shape: Readonly<Record<string, string>> = {}): string {
  const body = { type: 'error', ...shape, error: { ...envelope(error).error, ...shape } };
  return formatFrame(JSON.stringify(body), 'error');
}
