/** The stream of `openai-images`: previews (`….partial_image`), then the image with its usage (`….completed`). Pure. */

import { type JsonObject, objectOf, textOf } from '../../../core/json/json.ts';
import { errorIn } from '../../common/kit/error-body.ts';
import type { MediaAdapter, Streaming, VendorRequest } from '../../common/media/adapters.ts';
import { isModeration, moderated } from '../../common/media/outcome.ts';

/** Per preview: https://platform.openai.com/docs/guides/image-generation#streaming */
export const previewTokens = 100;

type Words = Pick<MediaAdapter, 'create' | 'readCreated'>;

/** The stream's last event has the members of a whole answer, without the list. */
export function streamingOf({ create, readCreated }: Words): Streaming {
  return {
    create(order, target): VendorRequest {
      const { body, form, ...rest } = create(order, target);
      const previews = order.previews ?? 0;
      if (form === undefined) return { ...rest, body: { ...body, stream: true, partial_images: previews } };
      const texts = { stream: 'true', partial_images: String(previews) };
      return { ...rest, form: [...form, ...Object.entries(texts).map(([name, text]) => ({ name, text }))] };
    },

    read(json, event, order) {
      const type = textOf(json['type']) ?? event ?? '';
      if (type.endsWith('.partial_image')) return 'preview';
      if (type.endsWith('.completed')) return endOf(readCreated({ status: 200, json: wholeOf(json) }, order));
      if (type !== 'error' && objectOf(json['error']) === undefined) return undefined;
      const error = errorIn(json);
      return isModeration(error) ? moderated(error) : 'error';
    },
  };
}

function wholeOf({ b64_json: base64, url, ...rest }: JsonObject): JsonObject {
  return { ...rest, data: [{ b64_json: base64, url }] };
}

/** These vendors never create a task of their own. */
function endOf(step: ReturnType<MediaAdapter['readCreated']>): ReturnType<Streaming['read']> {
  return step.state === 'done' || step.state === 'failed' ? step : undefined;
}
