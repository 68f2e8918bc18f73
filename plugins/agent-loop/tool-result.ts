/** A tool's result as the text that a model reads. Pure. */
import { isObject, type JsonObject, listOf, textOf } from '../../core/json/json.ts';

interface Result {
  readonly output: string;
  readonly isError: boolean;
}

/** `reply`: the server's message. `most`: bytes of the text. */
export function resultOf({ result, error }: JsonObject, most: number): Result {
  if (!isObject(result)) return { output: cut(messageOf(error), most), isError: true };
  if (result['resultType'] === 'input_required')
    return { output: 'The tool asks for input, which is not passed on here.', isError: true };
  const texts = listOf(result['content']).flatMap((part) => (isObject(part) ? [textOfPart(part)] : []));
  const text = texts.length === 0 ? JSON.stringify(result['structuredContent'] ?? null) : texts.join('\n');
  return { output: cut(text, most), isError: result['isError'] === true };
}

function messageOf(error: unknown): string {
  if (typeof error === 'string') return error;
  return (isObject(error) ? textOf(error['message']) : undefined) ?? 'The tool gave no answer.';
}

/** Bytes of images and sounds are no text. */
function textOfPart(part: JsonObject): string {
  if (part['type'] === 'text') return String(part['text']);
  if (part['type'] === 'resource' && isObject(part['resource']) && typeof part['resource']['text'] === 'string')
    return part['resource']['text'];
  if (part['type'] === 'resource_link') return JSON.stringify(part);
  return `[${String(part['type'])} ${textOf(part['mimeType']) ?? ''}]`;
}

function cut(text: string, most: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  // A character that is cut in the middle is left out.
  return `${new TextDecoder('utf8').decode(bytes.subarray(0, most), { stream: true })}\n[cut off here]`;
}
