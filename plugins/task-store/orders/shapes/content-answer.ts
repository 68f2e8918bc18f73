/** The answer to a `generateContent` request that ordered images: a candidate for each image, as bytes. Pure. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import { isObject, type JsonObject } from '../../../../core/json/json.ts';
import type { Usage } from '../../../common/domain/usage.ts';
import type { Shape, Task } from '../../contract.ts';

export const contentAnswer: Pick<Shape, 'submitted' | 'render'> = {
  /** The longest wait is over, and the protocol has no answer for that. */
  submitted({ id }) {
    const message = 'The image is not made yet: ask for its task later, and do not order it again.';
    const headers = { 'x-gateway-task': id };
    throw new GatewayError('upstream_timeout', message, { code: 'image_unfinished', shouldRetry: false, headers });
  },

  render: (task) => ({
    candidates: task.results.map(({ base64 = '', mediaType }, index) => ({
      content: { parts: [{ inlineData: { mimeType: mediaType, data: base64 } }], role: 'model' },
      finishReason: 'STOP',
      index,
    })),
    ...usageOf(task),
    modelVersion: task.model,
    responseId: task.id,
  }),
};

/** The same answer for a client of the specification: snake_case, with the time. */
export function specAnswer(official: string, created: number): string {
  return JSON.stringify({ ...(snakeCased(JSON.parse(official)) as JsonObject), created });
}

function snakeCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCased);
  if (!isObject(value)) return value;
  const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snake(name), snakeCased(member)]));
}

function usageOf({ made }: Task): JsonObject {
  const usage: Usage = made?.usage ?? {};
  const of = (...names: readonly (keyof Usage)[]) => names.reduce((sum, name) => sum + (usage[name] ?? 0), 0);
  const [texts, images] = [of('input', 'cache_read'), of('input_image', 'cache_read_image')];
  const [text, image, thoughts] = [of('output'), of('output_image'), of('reasoning')];
  const totalTokenCount = texts + images + text + image + thoughts;
  return {
    usageMetadata: {
      promptTokenCount: texts + images,
      candidatesTokenCount: text + image,
      ...(thoughts === 0 ? {} : { thoughtsTokenCount: thoughts }),
      totalTokenCount,
      ...detailsOf('promptTokensDetails', { TEXT: texts, IMAGE: images }),
      ...detailsOf('candidatesTokensDetails', { TEXT: text, IMAGE: image }),
    },
  };
}

function detailsOf(name: string, counts: Readonly<Record<string, number>>): JsonObject {
  const details = Object.entries(counts).flatMap(([modality, tokenCount]) =>
    tokenCount === 0 ? [] : [{ modality, tokenCount }],
  );
  return details.length === 0 ? {} : { [name]: details };
}
