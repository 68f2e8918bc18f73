/** Code that the vendor ran itself, as fenced text: other protocols cannot express it. Pure. */

import { type JsonObject, objectOf, textOf } from '../../../../core/json/json.ts';
import { fenced } from '../../encoding/fenced.ts';

/** The text of an `executableCode` or `codeExecutionResult` part; undefined for any other part. */
export function executedCode(part: JsonObject): string | undefined {
  const code = objectOf(part['executableCode'] ?? part['executable_code']);
  if (code !== undefined) return fenced(textOf(code['language'])?.toLowerCase() ?? '', textOf(code['code']) ?? '');
  const result = objectOf(part['codeExecutionResult'] ?? part['code_execution_result']);
  return result === undefined ? undefined : fenced('', textOf(result['output']) ?? '');
}
