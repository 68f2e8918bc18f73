/** Errors of Bedrock, as answers and inside streams, without what belongs to the operator's account. */
import type { Headers } from '../../core/contract/message.ts';
import { type JsonObject, objectOf, textOf } from '../../core/json/json.ts';

const unsaid = 'The model refused the request.';

/** Parts of messages that name accounts, regions, quotas or addresses. */
const namesAccount =
  /\barn:|\baws\b|amazon|bedrock|\baccounts?\b|\b\d{12}\b|inference profile|on-demand throughput|\bregion\b|\bIAM\b/i;
/** Precedes an error of the model itself. */
const preamble = /^The model returned the following errors?: */i;

export function readError(body: JsonObject, headers: Headers): JsonObject {
  const error = objectOf(body['error']);
  // Exceptions of a stream, and errors of the model's own protocol in one.
  if (error !== undefined) return { ...body, error: { ...error, message: clean(textOf(error['message'])) } };
  const code = (headers['x-amzn-errortype'] ?? textOf(body['__type']) ?? '').replace(/^.*#|:.*$/g, '');
  return { error: { message: clean(textOf(body['message']) ?? textOf(body['Message'])), code } };
}

function clean(message: string | undefined): string {
  const said = message?.replace(preamble, '').trim() ?? '';
  return said === '' || namesAccount.test(said) ? unsaid : said;
}
