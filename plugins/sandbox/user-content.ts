/** A user's content in the two protocols of one family, Chat Completions and Responses: a text or parts. Pure. */
import { type Ask, addMedium, addText, type Medium, userSpoke } from './ask.ts';
import { flatText, isObject, listOf, objectOf, textOf } from './json.ts';

const partMedia: Record<string, Medium | undefined> = {
  image_url: 'image',
  input_image: 'image',
  input_audio: 'audio',
  file: 'file',
  input_file: 'file',
};

export function readUserContent(ask: Ask, content: unknown): void {
  const parts = Array.isArray(content) ? content : [{ type: 'text', text: flatText(content) }];
  const media: Medium[] = [];
  let text = '';
  for (const value of parts) {
    const part = objectOf(value);
    const medium = partMedia[textOf(part['type']) ?? ''];
    if (medium === undefined) {
      const own = textOf(part['text']) ?? '';
      text += own;
      addText(ask, 'user', own, cacheMark([part]));
    } else {
      media.push(medium);
      addMedium(ask, 'user', medium, JSON.stringify(part), cacheMark([part]));
    }
  }
  userSpoke(ask, text, media);
}

/** Whether a prefix is to be cached up to this content. */
export function cacheMark(content: unknown): '5m' | undefined {
  const marked = listOf(content).some((part) => isObject(objectOf(part)['prompt_cache_breakpoint']));
  return marked ? '5m' : undefined;
}
