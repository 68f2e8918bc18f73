/** Code that the vendor ran by itself, as text: other protocols have no place for it. Pure. */
import { isObject, objectOf, textOf } from '../../json.ts';
import { fenced } from '../../wording/fenced.ts';

/** Of a code tool's input; '' where it is not whole. */
export function codeText(input: unknown): string {
  if (!isObject(input)) return '';
  const command = textOf(input['command']);
  const code = textOf(input['code']);
  if (command !== undefined) return fenced('sh', command);
  return code === undefined ? '' : fenced('python', code);
}

/** Of a result's content; '' where it printed nothing, or failed to run. */
export function printedText(content: unknown): string {
  const result = objectOf(content) ?? {};
  const printed = (textOf(result['stdout']) ?? '') + (textOf(result['stderr']) ?? '');
  return printed === '' ? '' : fenced('', printed);
}
