/** A user's content in Chat Completions and Responses: a text or parts. Pure. */
import { table } from '../../../core/contract/table.ts';
import { flatText, isObject, listOf, objectOf, textOf } from '../json.ts';
import { addMedium, addText, type Medium, type ModelRequest, userSpoke } from '../script/model-request.ts';

const partMedia: Record<string, Medium | undefined> = table({
  image_url: 'image',
  input_image: 'image',
  input_audio: 'audio',
  file: 'file',
  input_file: 'file',
});

export function decodeUserContent(modelRequest: ModelRequest, content: unknown): void {
  const parts = Array.isArray(content) ? content : [{ type: 'text', text: flatText(content) }];
  const media: Medium[] = [];
  let text = '';
  for (const value of parts) {
    const part = objectOf(value);
    const medium = partMedia[textOf(part['type']) ?? ''];
    if (medium === undefined) {
      const own = textOf(part['text']) ?? '';
      text += own;
      addText(modelRequest, 'user', own, cacheMark([part]));
    } else {
      media.push(medium);
      addMedium(modelRequest, 'user', medium, JSON.stringify(part), cacheMark([part]));
    }
  }
  userSpoke(modelRequest, text, media);
}

/** Whether a prefix is to be cached up to this content. */
export function cacheMark(content: unknown): '5m' | undefined {
  const marked = listOf(content).some((part) => isObject(objectOf(part)['prompt_cache_breakpoint']));
  return marked ? '5m' : undefined;
}
