/** The answer to a `generateContent` request that ordered images: a candidate for each image, as bytes. Pure. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
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
